#include "contract_fixture.h"

#include <algorithm>

namespace leasehold::store_contract {

std::string Word(store::ReadResult::Outcome outcome) {
  switch (outcome) {
    case store::ReadResult::Outcome::kAbsent: return "absent";
    case store::ReadResult::Outcome::kRecord: return "record";
    case store::ReadResult::Outcome::kAmbiguous: return "ambiguous";
    case store::ReadResult::Outcome::kRefused: return "refused";
  }
  return "?";
}

std::string Word(store::CasResult::Outcome outcome) {
  switch (outcome) {
    case store::CasResult::Outcome::kApplied: return "applied";
    case store::CasResult::Outcome::kConflict: return "conflict";
    case store::CasResult::Outcome::kAmbiguous: return "ambiguous";
    case store::CasResult::Outcome::kRefused: return "refused";
  }
  return "?";
}

void ContractTest::SetUp() {
  harness_ = GetParam()();
  const base::Status started = harness_->Start();
  ASSERT_TRUE(started.ok()) << started.error().message;
  store_ = OpenStore("contract", "p-main");
  ASSERT_NE(store_, nullptr);
}

void ContractTest::TearDown() {
  if (harness_ != nullptr && harness_->HasServer()) (void)harness_->Thaw();
  while (!stores_.empty()) CloseStore(stores_.back().get());
  harness_.reset();
}

ContractTest::Store* ContractTest::OpenStore(const std::string& prefix,
                                             const std::string& process_id) {
  stores_.push_back(harness_->MakeStore(loop_, prefix, process_id));
  Store* store = stores_.back().get();
  std::optional<base::Status> opened;
  store->Open([](std::string_view, bool, const std::string&) {},
              [&opened](base::Status status) { opened = std::move(status); });
  EXPECT_FALSE(opened.has_value()) << "Open called back from inside the call";
  EXPECT_TRUE(RunUntil([&opened] { return opened.has_value(); })) << "Open never called back";
  if (opened && !opened->ok()) ADD_FAILURE() << "Open: " << opened->error().message;
  return store;
}

void ContractTest::CloseStore(Store* store) {
  bool closed = false;
  store->Close([&closed] { closed = true; });
  EXPECT_FALSE(closed) << "Close called back from inside the call";
  EXPECT_TRUE(RunUntil([&closed] { return closed; })) << "Close never called back";
  std::erase_if(stores_, [store](const auto& owned) { return owned.get() == store; });
  if (store == store_) store_ = nullptr;
}

bool ContractTest::RunUntil(const std::function<bool()>& condition, base::Duration limit) {
  const base::MonoTime end = loop::Loop::Now() + limit;
  bool held = condition();
  if (held) return true;
  loop::Timer* ticking = nullptr;
  loop::Timer ticker(loop_, [&] {
    held = condition();
    if (held || loop::Loop::Now() >= end) return loop_.Stop();
    ticking->StartAfter(base::Duration::Millis(1));
  });
  ticking = &ticker;
  ticker.StartAfter(base::Duration::Zero());
  loop_.Run();
  return held;
}

void ContractTest::RunFor(base::Duration span) {
  RunUntil([] { return false; }, span);
}

ContractTest::Read ContractTest::ReadNow(Store* store, const std::string& lease,
                                         base::Duration timeout) {
  std::optional<Read> answer;
  store->Read(lease, timeout, [&answer](Read result) {
    EXPECT_FALSE(answer.has_value()) << "Read called back twice";
    answer = std::move(result);
  });
  EXPECT_FALSE(answer.has_value()) << "Read called back from inside the call";
  EXPECT_TRUE(RunUntil([&answer] { return answer.has_value(); })) << "Read never called back";
  return answer.value_or(Read{});
}

ContractTest::Cas ContractTest::CasNow(Store* store, const std::string& lease,
                                       const std::optional<lease::Version>& expected,
                                       const lease::Record& record, base::Duration timeout) {
  std::optional<Cas> answer;
  store->CompareAndSet(lease, expected, record, timeout, [&answer](Cas result) {
    EXPECT_FALSE(answer.has_value()) << "CompareAndSet called back twice";
    answer = std::move(result);
  });
  EXPECT_FALSE(answer.has_value()) << "CompareAndSet called back from inside the call";
  EXPECT_TRUE(RunUntil([&answer] { return answer.has_value(); }))
      << "CompareAndSet never called back";
  return answer.value_or(Cas{});
}

base::Status ContractTest::ProbeNow(Store* store, const std::string& lease,
                                    base::Duration timeout) {
  std::optional<base::Status> answer;
  store->ProbeWrite(lease, timeout, [&answer](base::Status status) { answer = std::move(status); });
  EXPECT_FALSE(answer.has_value()) << "ProbeWrite called back from inside the call";
  EXPECT_TRUE(RunUntil([&answer] { return answer.has_value(); })) << "ProbeWrite never called back";
  return answer.value_or(base::Status(base::Error{}));
}

ContractTest::Read ContractTest::ReadWhenBack(Store* store, const std::string& lease) {
  const base::MonoTime end = loop::Loop::Now() + kPatience;
  Read answer;
  do {
    answer = ReadNow(store, lease, base::Duration::Millis(500));
    if (answer.outcome != Read::Outcome::kAmbiguous) break;
    RunFor(base::Duration::Millis(10));
  } while (loop::Loop::Now() < end);
  return answer;
}

lease::Record ContractTest::SomeRecord(const std::string& lease, uint64_t token, uint64_t beat) {
  lease::Record record;
  record.lease = lease;
  record.node_id = "node-a";
  record.process_id = "p-main";
  record.token = token;
  record.beat = beat;
  record.ttl_ms = 10000;
  record.state = lease::RecordState::kHeld;
  record.peers = {{"web", "127.0.0.1:8081"}};
  record.acquired_at_unix_ms = 1796052115123;
  return record;
}

lease::Version ContractTest::Create(const lease::Record& record) {
  const Cas made = CasNow(store_, record.lease, std::nullopt, record);
  EXPECT_EQ(Word(made.outcome), "applied") << made.error;
  return made.version;
}

}  // namespace leasehold::store_contract
