// Step-downs on request (DESIGN 2.5): a precondition that does not match the present term changes
// nothing and is answered at once; every request is answered exactly once; the answer does not lie.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

using Done = lease::StepDownDone;

struct Asked {
  lease::StepDownRequest request;
  base::MonoTime at;
  bool answered = false;
};

struct Life {
  const Process* process = nullptr;
  std::map<uint64_t, Asked> asked;
  base::MonoTime deadline;  // NextDeadline() after the last step
};

class StepDownChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    life.process = &f.process;
    const auto* request = std::get_if<lease::StepDownRequest>(&f.event);
    if (request != nullptr) life.asked[request->request] = {*request, f.now, false};
    for (const lease::Effect& effect : f.effects) {
      if (const auto* done = std::get_if<Done>(&effect)) CheckAnswer(f, life, *done);
    }
    if (request != nullptr) CheckRequest(f, life, *request);
    life.deadline = f.deadline;
    const auto stopped =
        std::find_if(f.effects.begin(), f.effects.end(), [](const lease::Effect& effect) {
          return std::holds_alternative<lease::StoppedEffect>(effect);
        });
    if (stopped != f.effects.end()) CheckAllAnswered(life, "stopped");
  }

  void LostWrites(const LossFact&) override { lossy_ = true; }

  void Finished(TrueNs) override {
    for (const Life& life : lives_) {
      if (life.process != nullptr && life.process->alive) CheckAllAnswered(life, "is at rest");
    }
  }

 private:
  static bool Matches(const StepFact& f, const lease::StepDownRequest& request) {
    return f.before.MayAct(f.now) && request.expected.node_id == f.process.identity.node_id &&
           request.expected.token == f.before.token;
  }

  void CheckRequest(const StepFact& f, const Life& life, const lease::StepDownRequest& request) {
    if (f.now >= life.deadline) return;  // the same step also does what a Tick would have done
    if (Matches(f, request)) {
      if (f.after.MayAdmit(f.now)) {
        Broken(f, "a step-down that is asked for begins at once",
               "admits after step-down #" + std::to_string(request.request));
      }
      return;
    }
    for (const lease::Effect& effect : f.effects) {
      if (std::holds_alternative<Done>(effect)) continue;
      Broken(f, "a stale precondition changes nothing",
             "acted on step-down #" + std::to_string(request.request) + ", which expects " +
                 request.expected.node_id + " with token " +
                 std::to_string(request.expected.token));
    }
    if (f.after != f.before) {
      Broken(f, "a stale precondition changes nothing", "changed its permit on one");
    }
    const bool never_ours = request.expected.node_id != f.process.identity.node_id ||
                            request.expected.token == 0 || request.expected.token > f.before.token;
    if (never_ours && !life.asked.at(request.request).answered) {
      Broken(f, "a stale precondition is answered failed_precondition at once",
             "did not answer step-down #" + std::to_string(request.request));
    }
  }

  void CheckAnswer(const StepFact& f, Life& life, const Done& done) {
    const auto asked = life.asked.find(done.request);
    if (asked == life.asked.end() || asked->second.answered) {
      Broken(f, "every step-down request is answered exactly once",
             "answers step-down #" + std::to_string(done.request) +
                 (asked == life.asked.end() ? ", which it was not asked" : " twice"));
      return;
    }
    asked->second.answered = true;
    const lease::Precondition& expected = asked->second.request.expected;
    if (done.expected.node_id != expected.node_id || done.expected.token != expected.token) {
      Broken(f, "the answer repeats the expected node id and token as sent", "changes them");
    }
    const std::string& own = f.process.identity.process_id;
    const bool back = done.outcome == Done::Outcome::kTakenBack;
    const bool over = done.outcome == Done::Outcome::kTakenOver;
    if ((back && done.process_id != own) || (over && done.process_id == own) ||
        ((back || over) && !lossy_ && done.token <= done.released_token)) {
      Broken(f, "the answer says who holds now",
             "answers step-down #" + std::to_string(done.request) + " with " + done.process_id +
                 " token " + std::to_string(done.token) + ", released " +
                 std::to_string(done.released_token));
    }
    const bool nothing_happened = done.outcome == Done::Outcome::kFailedPrecondition ||
                                  done.outcome == Done::Outcome::kNotHolder;
    if (nothing_happened && done.released_token != 0) {
      Broken(f, "failed_precondition and not_holder release nothing", "says it released a token");
    }
  }

  void CheckAllAnswered(const Life& life, const std::string& when) {
    for (const auto& [number, asked] : life.asked) {
      if (asked.answered) continue;
      judge_.Violate("every step-down request is answered exactly once",
                     Name(*life.process) + " " + when + " and never answered step-down #" +
                         std::to_string(number));
    }
  }

  void Broken(const StepFact& f, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(f.process) + " " + what);
  }

  bool lossy_ = false;
  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeStepDownChecker(Judge& judge) {
  return std::make_unique<StepDownChecker>(judge);
}

}  // namespace leasehold::simulation
