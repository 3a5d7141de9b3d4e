// Journal: all that happened in a case, as its assertions ask: what was told, written, executed,
// answered. A checker that demands nothing. Times are true ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulation/facts.h"

namespace leasehold::simulation {

struct Told {  // a notice
  TrueNs at = 0;
  int node = 0;
  int process = 0;  // Process::serial
  lease::Notice notice = lease::Notice::kAcquired;
  lease::Reason reason = lease::Reason::kNone;
  uint64_t token = 0;
};

struct Turned {  // a valve
  TrueNs at = 0;
  int node = 0;
  lease::Valve valve = lease::Valve::kClosed;
  lease::Reason reason = lease::Reason::kNone;
  uint64_t token = 0;
};

struct Written {  // by the store; `at`: when it took effect
  TrueNs at = 0;
  TrueNs sent_at = 0;
  int node = 0;
  int process = 0;
  lease::CasEffect::Purpose purpose = lease::CasEffect::Purpose::kRenew;
  uint64_t token = 0;
};

struct Served {  // executed by an application, or its answer passed on by the gate that admitted it
  TrueNs at = 0;
  int node = 0;
  uint64_t token = 0;  // of an execution
};

struct Reply {
  TrueNs at = 0;
  int node = 0;  // that the client asked
  AnswerFact::Kind kind = AnswerFact::Kind::kDone;
};

class Journal final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override;
  void Applied(const WriteFact& f) override;
  void Sending(const SendFact& f) override;
  void Executed(const ExecutionFact& f) override;
  void Passed(const PassFact& f) override;
  void Answered(const AnswerFact& f) override;

  // ---- what was told ----
  std::vector<Told> All(lease::Notice notice) const;
  std::optional<Told> First(lease::Notice notice, TrueNs from = 0) const;
  std::optional<Turned> FirstTurn(lease::Valve valve, TrueNs from = 0) const;
  // ---- what was written ----
  // The last write of `node` that the store took before `before`, by when it was sent.
  TrueNs LastSent(int node, TrueNs before) const;
  // Writes that left a process under a token of its own that it had sent the release of, but for
  // that release's own repetitions.
  size_t writes_after_release() const { return writes_after_release_; }
  // ---- what clients and applications saw ----
  std::optional<TrueNs> LastPassed(int node) const;
  std::optional<TrueNs> FirstExecuted(int node) const;
  std::optional<TrueNs> LastExecuted(int node) const;
  size_t Answers(AnswerFact::Kind kind, TrueNs from, TrueNs to) const;
  bool TokensOnlyRise() const;  // from execution to execution
  // The longest time without a holder whose gate was open, from `from` to `to`.
  TrueNs LongestGap(TrueNs from, TrueNs to) const;

  const std::vector<Told>& told() const { return told_; }
  const std::vector<Written>& written() const { return written_; }
  const std::vector<Served>& executed() const { return executed_; }
  const std::vector<lease::StepDownDone>& step_downs() const { return step_downs_; }

 private:
  struct Release {
    int process;
    uint64_t token;
  };
  std::vector<Told> told_;
  std::vector<Turned> turned_;
  std::vector<Written> written_;
  std::vector<Served> executed_;
  std::vector<Served> passed_;
  std::vector<Reply> replies_;
  std::vector<lease::StepDownDone> step_downs_;
  std::vector<Release> releases_;
  size_t writes_after_release_ = 0;
};

}  // namespace leasehold::simulation
