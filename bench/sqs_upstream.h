// SqsUpstream: an SQS that answers at once and remembers nothing, to measure what stands before it
// (sqs_upstream_main.cc). It listens twice: where anybody may ask, and where requests must be
// signed. Every request there must carry a signature, and one in kCheckEvery is recomputed, so
// that checking costs the machine little. One loop, owned by main. `GET /counts` tells what it did.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "loop/stream.h"
#include "proto/http1.h"
#include "sqs_answers.h"

namespace leasehold::bench {

class SqsConnection;

class SqsUpstream {
 public:
  struct Key {
    std::string id;
    std::string secret;
  };
  SqsUpstream(loop::Loop& loop, Key key);
  ~SqsUpstream();

  // On a port of the kernel's choice, on loopback; which it is.
  base::Result<uint16_t> Listen(bool signed_only);

  // ---- for SqsConnection ----
  Answer Reply(const proto::http1::RequestHead& head, std::string_view body, bool signed_only);
  void Bury(SqsConnection* connection);
  // The Date header's value, which SQS gives with every answer, and signers read.
  const std::string& Date();

 private:
  loop::Loop& loop_;
  const Key key_;
  SqsAnswers answers_;
  std::string counts_;
  std::string date_;
  int64_t date_seconds_ = 0;  // of date_
  uint64_t signed_ = 0;
  uint64_t checked_ = 0;
  std::vector<std::unique_ptr<loop::Listener>> listeners_;
  std::vector<std::unique_ptr<SqsConnection>> connections_;
};

// One connection: whole requests in, whole answers out, in order. Buries itself when its peer is
// gone.
class SqsConnection final : private loop::StreamListener {
 public:
  SqsConnection(SqsUpstream& upstream, std::unique_ptr<loop::Stream> stream, bool signed_only);

 private:
  void OnData(std::span<const char> bytes) override;
  void OnEnd() override { End(); }
  void OnDrained() override {}
  void OnClosed(const base::Error&) override { End(); }

  void OnComplete();
  void End();

  SqsUpstream& upstream_;
  const bool signed_only_;
  std::unique_ptr<loop::Stream> stream_;
  proto::http1::RequestParser parser_;
  bool ended_ = false;
  std::string body_;
  std::string head_;
};

}  // namespace leasehold::bench
