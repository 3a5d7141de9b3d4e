// DynamoDbStore: the class behind MakeDynamoDbStore; private to the adapter's own sources. What it
// is and promises stands in dynamodb_store.h. dynamodb_store.cc has calls and their life, the start
// and the close; dynamodb_calls.cc reads, compare-and-sets and probes; dynamodb_answer.h what their
// answers mean.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "aws/service.h"
#include "base/result.h"
#include "base/time.h"
#include "loop/lifetime.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "observe/log.h"
#include "store/dynamodb_answer.h"
#include "store/dynamodb_errors.h"
#include "store/dynamodb_store.h"
#include "store/lease_store.h"

namespace leasehold::store {

class DynamoDbStore final : public LeaseStore {
 public:
  DynamoDbStore(loop::Loop& loop, const DynamoDbOptions& options, const DynamoDbTuning& tuning,
                std::shared_ptr<aws::CredentialsProvider> credentials, aws::Endpoint endpoint,
                std::string prefix, observe::Log& log);
  ~DynamoDbStore() override { loop::CallGuard::MarkGone(gone_); }

  void Open(TroubleCallback trouble, std::function<void(base::Status)> done) override;
  void Read(std::string_view lease, base::Duration timeout, ReadCallback done) override;
  void CompareAndSet(std::string_view lease, const std::optional<lease::Version>& expected,
                     const lease::Record& record, base::Duration timeout,
                     CasCallback done) override;
  void Watch(std::string_view, WatchCallback) override {}  // no push: standbys poll
  void ProbeWrite(std::string_view lease, base::Duration timeout,
                  std::function<void(base::Status)> done) override;
  StoreStats stats() const override { return stats_; }
  std::string Describe() const override { return place_.ToString(); }
  void Close(std::function<void()> done) override;

 private:
  using Answered = std::function<void(const DynamoDbAnswer&)>;
  // A call that is out. Without `call` nothing was sent: it is answered on the next turn.
  struct Outstanding {
    std::unique_ptr<aws::Call> call;
    Answered done;
  };
  // One CompareAndSet on its way: the write, and where need be the look after it.
  struct CasCall {
    DynamoDbItem item;
    bool expected_absent = false;
    lease::Record record;
    base::MonoTime started, deadline;
    CasCallback done;
  };
  using CasCallPtr = std::shared_ptr<CasCall>;

  // ---- calls: each `done` exactly once, later, from the loop ----
  void Send(std::string_view operation, std::string body, base::Duration timeout, Answered done);
  void AnswerUnsent(DynamoDbAnswer answer, Answered done);
  void Finish(uint64_t id, const DynamoDbAnswer& answer);
  void Note(const DynamoDbAnswer& answer);
  void NoteThrottled(const std::string& sentence);
  void EndThrottled();

  // ---- the start ----
  void Check();
  void OnChecked(const DynamoDbAnswer& answer);
  void CreateTable();
  void OnCreated(const DynamoDbAnswer& answer);
  void CheckAgain(const std::string& why);
  void CreateLate();
  void FinishOpen(base::Status status);

  DynamoDbItem ItemOf(std::string_view lease) const;
  void OnCasAnswer(const CasCallPtr& call, const DynamoDbAnswer& answer);
  void FinishCas(const CasCallPtr& call, CasResult result, const DynamoDbAnswer& answer);
  void Count(std::string_view operation, std::string_view result, base::MonoTime started);

  const DynamoDbOptions options_;
  const DynamoDbTuning tuning_;
  const DynamoDbPlace place_;
  const std::string prefix_;
  observe::Log& log_;
  observe::RateLimit up_lines_;
  observe::RateLimit down_lines_;
  loop::Poster poster_;
  loop::Timer create_timer_;
  loop::Timer throttle_timer_;  // a window without throttling ends here
  TroubleCallback trouble_;
  std::function<void(base::Status)> open_done_;
  bool skew_corrected_ = false;           // by the first call of the start
  base::MonoTime create_until_;           // set when the table is first asked for
  bool creating_late_ = false;            // after the start
  bool table_asked_for_ = false;          // and DynamoDB said that it makes it, or somebody does
  std::deque<base::MonoTime> throttled_;  // the last throttles, throttles_for_trouble at most
  bool in_throttle_trouble_ = false;
  StoreStats stats_;
  bool closed_ = false;
  uint64_t next_call_ = 1;
  aws::Service service_;
  std::map<uint64_t, Outstanding> calls_;  // goes before the service does
  bool* gone_ = nullptr;
};

}  // namespace leasehold::store
