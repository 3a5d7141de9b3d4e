// FileHarness: the file store in a fresh temporary directory. No server; what only the file store
// promises is tested in file_test.cc.
#pragma once

#include <memory>
#include <string>

#include "harness.h"
#include "observe/log.h"
#include "store/options.h"

namespace leasehold::store_contract {

class FileHarness final : public Harness {
 public:
  explicit FileHarness(store::Durability durability);
  ~FileHarness() override;

  base::Status Start() override;
  std::unique_ptr<store::LeaseStore> MakeStore(loop::Loop& loop, const std::string& prefix,
                                               const std::string& process_id) override;
  base::Status WriteGarbage(const std::string& prefix, const std::string& lease) override;
  base::Status WriteRecord(const std::string& prefix, const std::string& lease,
                           const lease::Record& record) override;
  std::string UnknownValue() const override { return R"({"a":[1,"\"ä",null,-0.5],"b":{}})"; }
  bool ProvesDeath() const override { return true; }

  const std::string& dir() const { return dir_; }
  // The whole path of a lease's record.
  std::string RecordPath(const std::string& prefix, const std::string& lease) const;
  base::Status WriteFile(const std::string& path, const std::string& text) const;

 private:
  store::Durability durability_;
  std::string top_;
  std::string dir_;
  std::unique_ptr<observe::Log> log_;
};

}  // namespace leasehold::store_contract
