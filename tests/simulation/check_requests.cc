// Requests, as clients and applications see them (DESIGN 1, 4): what is not idempotent is executed
// once at most; what was answered with success was executed; what was refused was not; everybody is
// answered in time; and a planned step-down in an otherwise perfect world fails nobody.
//
// A GET is idempotent: it may be executed again at another holder after its peer broke off.
#include <algorithm>
#include <deque>
#include <string>

#include "simulation/checkers.h"
#include "simulation/facts.h"

namespace leasehold::simulation {
namespace {

struct Story {
  const Request* request = nullptr;
  int executions = 0;
  int applied = 0;  // of them, by the fenced resource
  bool answered = false;
  bool refused = false;
  bool abandoned = false;
};

class RequestChecker final : public Checker {
 public:
  RequestChecker(Judge& judge, const Scenario& scenario) : Checker(judge), scenario_(scenario) {
    for (const std::vector<NodePlan>* plans : {&scenario.nodes, &scenario.changed}) {
      for (const NodePlan& node : *plans) {
        for (const gate::Options& gate : node.gates) {
          longest_hold_ = std::max(longest_hold_, gate.hold_timeout.nanos());
        }
        // When grace is over an http request that got no byte is answered 503 (2.5).
        loses_nothing_ = loses_nothing_ && node.options.step_down_grace.millis() >= 50 &&
                         node.options.step_down_grace.nanos() > 2 * scenario.ttl / 100;
      }
    }
  }

  void Requested(const Request& request) override { stories_.push_back({&request}); }
  void Abandoned(const Request& request) override { Of(request).abandoned = true; }

  void Executed(const ExecutionFact& f) override {
    Story& story = Of(f.request);
    ++story.executions;
    if (f.applied) ++story.applied;
    if (f.request.post && story.executions > 1) {
      judge_.Violate("a request that is not idempotent is never executed twice",
                     Text(f.request) + " was executed again, by " + Name(f.process));
    }
    if (story.refused) Refused(f.request);
  }

  void Answered(const AnswerFact& f) override {
    Story& story = Of(f.request);
    if (story.answered) {
      judge_.Violate("every request is answered once", Text(f.request) + " was answered twice");
    }
    story.answered = true;
    story.refused = f.kind == AnswerFact::Kind::kRefused;
    if (f.kind == AnswerFact::Kind::kDone && story.applied == 0) {
      judge_.Violate("what is acknowledged was done",
                     Text(f.request) + " was answered with success and never applied");
    }
    if (story.refused && story.executions > 0) Refused(f.request);
    if (f.kind != AnswerFact::Kind::kDone && scenario_.kind == Kind::kCalmStepDown &&
        loses_nothing_ && f.request.gate == 0 && f.request.sent_at > scenario_.ttl) {
      judge_.Violate("planned moves lose nothing",
                     Text(f.request) + " failed in a world with one planned step-down");
    }
  }

  void Finished(TrueNs at) override {
    // Held as long as may be, twice at a peer that gives no sign of life, and worked on.
    const TrueNs longest = longest_hold_ + 7 * kSecond + 2 * scenario_.ttl_max;
    for (const Story& story : stories_) {
      const Request& request = *story.request;
      if (story.answered || story.abandoned || request.tunnel) continue;
      const TrueNs from = std::max(request.sent_at, scenario_.faults_end);
      if (at - from <= longest + request.work) continue;
      judge_.Violate("every request is answered once",
                     Text(request) + " has no answer after " + Seconds(at - from) + " s");
      return;
    }
  }

 private:
  Story& Of(const Request& request) { return stories_[request.id - 1]; }

  static std::string Text(const Request& request) {
    return std::string(request.post ? "POST " : "GET ") + std::to_string(request.id);
  }

  void Refused(const Request& request) {
    judge_.Violate("what is refused is not done",
                   Text(request) + " was refused before admission, and executed");
  }

  const Scenario& scenario_;
  TrueNs longest_hold_ = 0;
  bool loses_nothing_ = true;
  std::deque<Story> stories_;  // by Request::id, which counts from 1
};

}  // namespace

std::unique_ptr<Checker> MakeRequestChecker(Judge& judge, const Scenario& scenario) {
  return std::make_unique<RequestChecker>(judge, scenario);
}

}  // namespace leasehold::simulation
