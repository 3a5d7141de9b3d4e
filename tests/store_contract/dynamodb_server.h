// DynamoDbServer: an emulator of DynamoDB as a process of a test, on a loopback port of its own:
// dynalite (npm; keeps connections, ignores ReturnValuesOnConditionCheckFailure) or moto (PyPI;
// shows the item of a failed condition, closes after each answer, forgets all in a restart). Both
// come from build/tools/aws (`.ci/aws-tools build/tools/aws`), or from where LEASEHOLD_AWS_TOOLS
// says. Started, frozen, killed by process id; it dies with the test process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "lib/socket_peer.h"

namespace leasehold::store_contract {

class DynamoDbServer {
 public:
  enum class Kind { kDynalite, kMoto };

  // Ready to answer when it returns, without a table.
  static base::Result<std::unique_ptr<DynamoDbServer>> Start(Kind kind);
  ~DynamoDbServer() { Kill(); }
  DynamoDbServer(const DynamoDbServer&) = delete;
  DynamoDbServer& operator=(const DynamoDbServer&) = delete;

  uint16_t port() const { return port_; }
  bool running() const { return pid_ > 0; }
  base::Status Freeze();  // SIGSTOP: the kernel accepts, nobody answers
  base::Status Thaw();
  void Kill();             // SIGKILL, and waits until it is gone
  base::Status Restart();  // after Kill: same port; dynalite has its data again

  // One call, blocking, at most 10 s: the body of a 200, else an error with the answer.
  base::Result<std::string> Call(const std::string& operation, const std::string& body) const;
  // As the adapter makes one; it is there when this returns.
  base::Status CreateTable(const std::string& table) const;

 private:
  explicit DynamoDbServer(Kind kind) : kind_(kind) {}
  base::Status Launch();

  const Kind kind_;
  testing::TempDir dir_;
  uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace leasehold::store_contract
