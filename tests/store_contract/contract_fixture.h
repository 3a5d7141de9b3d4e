// ContractTest: the fixture of the contract suite: one loop, one harness, one opened store
// ("contract", process "p-main"), and helpers that run the loop until an answer is there or a limit
// has passed. Harness files instantiate it:
//   INSTANTIATE_TEST_SUITE_P(File, ContractTest, ::testing::Values(HarnessFactory(MakeFile)),
//                            [](const auto& param) { return std::string("Plain"); });
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "harness.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "store/lease_store.h"

namespace leasehold::store_contract {

class ContractTest : public ::testing::TestWithParam<HarnessFactory> {
 protected:
  using Store = store::LeaseStore;
  using Read = store::ReadResult;
  using Cas = store::CasResult;

  // Far above what a healthy store on this machine takes, even on a busy one.
  static constexpr base::Duration kPatience = base::Duration::Seconds(20);
  static constexpr base::Duration kCallTimeout = base::Duration::Seconds(5);

  void SetUp() override;
  void TearDown() override;

  // Makes and opens one more store; it is closed by TearDown (or by CloseStore).
  Store* OpenStore(const std::string& prefix, const std::string& process_id);
  void CloseStore(Store* store);

  // Runs the loop until `condition` holds; false if `limit` passed first.
  bool RunUntil(const std::function<bool()>& condition, base::Duration limit = kPatience);
  void RunFor(base::Duration span);  // lets things happen that a test says must NOT happen

  Read ReadNow(Store* store, const std::string& lease, base::Duration timeout = kCallTimeout);
  Cas CasNow(Store* store, const std::string& lease, const std::optional<lease::Version>& expected,
             const lease::Record& record, base::Duration timeout = kCallTimeout);
  base::Status ProbeNow(Store* store, const std::string& lease,
                        base::Duration timeout = kCallTimeout);
  // Repeats a read until it is not ambiguous: for a server that is coming back.
  Read ReadWhenBack(Store* store, const std::string& lease);

  // A valid held record of process "p-main".
  static lease::Record SomeRecord(const std::string& lease, uint64_t token = 1, uint64_t beat = 1);
  // Creates it and gives its version; fails the test if the store refuses.
  lease::Version Create(const lease::Record& record);

  loop::Loop loop_;
  std::unique_ptr<Harness> harness_;
  std::vector<std::unique_ptr<Store>> stores_;
  Store* store_ = nullptr;
};

// What only some stores can promise has a suite of its own, so that nothing is skipped: a harness
// instantiates the ones that hold for its store.
class PushContractTest : public ContractTest {};  // its Watch gives hints
class ServerContractTest : public ContractTest {
};  // it has a server that can freeze, die and come back
class ServerPushContractTest : public ContractTest {};  // both

// Words of an outcome, for messages and comparisons that read well.
std::string Word(store::ReadResult::Outcome outcome);
std::string Word(store::CasResult::Outcome outcome);

}  // namespace leasehold::store_contract
