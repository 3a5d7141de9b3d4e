#include "simulation/cases/journal.h"

#include <algorithm>

namespace leasehold::simulation {

void Journal::Stepped(const StepFact& f) {
  for (const lease::Effect& effect : f.effects) {
    if (const auto* told = std::get_if<lease::NoticeEffect>(&effect)) {
      told_.push_back(
          {f.at, f.process.node, f.process.serial, told->notice, told->reason, told->token});
    } else if (const auto* valve = std::get_if<lease::ValveEffect>(&effect)) {
      turned_.push_back({f.at, f.process.node, valve->valve, valve->reason, valve->token});
    } else if (const auto* done = std::get_if<lease::StepDownDone>(&effect)) {
      step_downs_.push_back(*done);
    }
  }
}

void Journal::Applied(const WriteFact& f) {
  written_.push_back(
      {f.at, f.sent_at, f.writer.node, f.writer.serial, f.effect.purpose, f.effect.record.token});
}

void Journal::Sending(const SendFact& f) {
  const uint64_t token = f.effect.record.token;
  const bool release = f.effect.purpose == lease::CasEffect::Purpose::kRelease;
  for (const Release& earlier : releases_) {
    if (earlier.process == f.process.serial && earlier.token >= token && !release) {
      ++writes_after_release_;
    }
  }
  if (release) releases_.push_back({f.process.serial, token});
}

void Journal::Executed(const ExecutionFact& f) {
  executed_.push_back({f.at, f.process.node, f.token});
}

void Journal::Passed(const PassFact& f) { passed_.push_back({f.at, f.process.node, 0}); }

void Journal::Answered(const AnswerFact& f) { replies_.push_back({f.at, f.request.node, f.kind}); }

std::vector<Told> Journal::All(lease::Notice notice) const {
  std::vector<Told> all;
  std::copy_if(told_.begin(), told_.end(), std::back_inserter(all),
               [&](const Told& told) { return told.notice == notice; });
  return all;
}

std::optional<Told> Journal::First(lease::Notice notice, TrueNs from) const {
  for (const Told& told : told_) {
    if (told.notice == notice && told.at >= from) return told;
  }
  return std::nullopt;
}

std::optional<Turned> Journal::FirstTurn(lease::Valve valve, TrueNs from) const {
  for (const Turned& turned : turned_) {
    if (turned.valve == valve && turned.at >= from) return turned;
  }
  return std::nullopt;
}

TrueNs Journal::LastSent(int node, TrueNs before) const {
  TrueNs last = -1;
  for (const Written& write : written_) {
    if (write.node == node && write.at < before) last = std::max(last, write.sent_at);
  }
  return last;
}

std::optional<TrueNs> Journal::LastPassed(int node) const {
  std::optional<TrueNs> last;
  for (const Served& passed : passed_) {
    if (passed.node == node) last = passed.at;
  }
  return last;
}

std::optional<TrueNs> Journal::FirstExecuted(int node) const {
  for (const Served& executed : executed_) {
    if (executed.node == node) return executed.at;
  }
  return std::nullopt;
}

std::optional<TrueNs> Journal::LastExecuted(int node) const {
  std::optional<TrueNs> last;
  for (const Served& executed : executed_) {
    if (executed.node == node) last = executed.at;
  }
  return last;
}

size_t Journal::Answers(AnswerFact::Kind kind, TrueNs from, TrueNs to) const {
  return static_cast<size_t>(std::count_if(
      replies_.begin(), replies_.end(),
      [&](const Reply& reply) { return reply.kind == kind && reply.at >= from && reply.at < to; }));
}

bool Journal::TokensOnlyRise() const {
  return std::is_sorted(executed_.begin(), executed_.end(),
                        [](const Served& a, const Served& b) { return a.token < b.token; });
}

TrueNs Journal::LongestGap(TrueNs from, TrueNs to) const {
  TrueNs longest = 0;
  TrueNs since = from;
  bool open = false;
  int by = -1;
  for (const Turned& turned : turned_) {
    const TrueNs at = std::clamp(turned.at, from, to);
    if (turned.valve == lease::Valve::kOpen) {
      if (!open) longest = std::max(longest, at - since);
      open = true;
      by = turned.node;
    } else if (open && turned.node == by) {
      open = false;
      since = at;
    }
  }
  return open ? longest : std::max(longest, to - since);
}

}  // namespace leasehold::simulation
