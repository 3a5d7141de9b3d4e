// Facts: what the simulator tells its checkers. A checker sees everything, true time included, and
// changes nothing; the simulator knows no rule of the protocol, the checkers know no simulator.
//
// Order: for one engine step, Applied() of earlier writes comes before the Stepped() that carries
// their answer; facts come in the order of true time.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lease/engine.h"
#include "simulation/clock.h"
#include "simulation/scenario.h"

namespace leasehold::simulation {

// One life of one engine. Lives as long as the run.
struct Process {
  int serial = 0;  // index over all processes of the run
  int node = 0;    // index into Scenario::nodes
  lease::Identity identity;
  const NodePlan* plan = nullptr;
  lease::Timing timing;
  lease::Memory memory;  // what it was born with
  const BootClock* clock = nullptr;
  uint64_t engine_seed = 0;
  std::map<std::string, std::string> peers;
  base::MonoTime born;
  bool alive = true;
  base::Duration stood;  // of its own clock's time, what it spent frozen
};

// The permit as it was at one moment.
struct PermitShot {
  lease::Valve valve = lease::Valve::kClosed;
  uint64_t token = 0;
  base::MonoTime expiry;

  bool MayAct(base::MonoTime now) const { return valve != lease::Valve::kClosed && now < expiry; }
  bool MayAdmit(base::MonoTime now) const { return valve == lease::Valve::kOpen && now < expiry; }
  bool operator==(const PermitShot&) const = default;
};
PermitShot Shot(const lease::Permit& permit);

struct StepFact {
  const Process& process;
  TrueNs at;
  base::MonoTime now;
  const lease::Event& event;
  const lease::Effects& effects;
  PermitShot before;
  PermitShot after;
  base::MonoTime deadline;  // NextDeadline() after the step
  // The event answers the latest call. Other answers are of abandoned calls, which count nothing.
  bool answers_latest;
  // And before that call's time was up: then the engine cannot have given it up.
  bool answer_counts;
};

struct WriteFact {  // a compare-and-set took effect in the register
  const Process& writer;
  TrueNs at;
  const lease::CasEffect& effect;
  lease::Version version;
  std::optional<lease::Record> replaced;
  base::MonoTime sent;  // on the writer's clock, when the effect came out of the engine
  TrueNs sent_at;
};

struct SendFact {  // a compare-and-set leaves the process
  const Process& process;
  TrueNs at;
  const lease::CasEffect& effect;
};

// ---- requests ----

struct Request {
  uint64_t id = 0;
  bool post = false;    // not idempotent: never executed twice
  int node = 0;         // whose gate the client asked
  size_t gate = 0;      // index into NodePlan::gates
  bool tunnel = false;  // never answered; goes on until it is cut
  TrueNs sent_at = 0;
  TrueNs work = 0;  // of the application
};

struct ActFact {  // a gate admitted a request under the permit, by a fresh look at the clock
  const Process& process;
  TrueNs at;
  uint64_t token;
  const Request& request;
  size_t gate = 0;       // index into NodePlan::gates
  bool held = false;     // it waited in the queue of this gate
  uint32_t waiting = 0;  // still in the queue of this gate
};

struct FinishFact {  // it is in flight no longer
  const Process& process;
  TrueNs at;
  const Request& request;
  size_t gate = 0;
};

struct PassFact {  // a gate passed an answer on to its client, of a request that it had admitted
  const Process& process;
  TrueNs at;
  size_t gate = 0;
};

struct ExecutionFact {     // an application did the work
  const Process& process;  // whose gate sent it there
  TrueNs at;
  const Request& request;
  uint64_t token;
  bool applied;  // by the fenced resource; the unfenced one takes everything
};

struct AnswerFact {  // the client has its answer
  enum class Kind {
    kDone,     // 2xx
    kRefused,  // 503 before admission, or a refused connect: nothing was done
    kShut,     // an error after admission, or a broken connection: it may have been done
  };
  const Request& request;
  TrueNs at;
  Kind kind;
};

struct LossFact {  // the store lost acknowledged writes
  TrueNs at;
  TrueNs restored_from;  // writes applied after this instant are gone
  std::optional<lease::Record> restored;
};

class Judge {  // where a checker reports
 public:
  virtual ~Judge() = default;
  // The first violation of a run counts. `rule`: one sentence of DESIGN 2 that was broken.
  virtual void Violate(const std::string& rule, const std::string& detail) = 0;
};

class Checker {
 public:
  explicit Checker(Judge& judge) : judge_(judge) {}
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;
  virtual ~Checker() = default;

  virtual void Born(const Process&) {}
  virtual void Stepped(const StepFact&) {}
  virtual void Applied(const WriteFact&) {}
  virtual void LostWrites(const LossFact&) {}
  virtual void Sending(const SendFact&) {}
  virtual void Requested(const Request&) {}
  virtual void Acted(const ActFact&) {}
  virtual void WorkEnded(const FinishFact&) {}
  virtual void Passed(const PassFact&) {}
  virtual void Executed(const ExecutionFact&) {}
  virtual void Answered(const AnswerFact&) {}
  virtual void Abandoned(const Request&) {}             // its client gave up
  virtual void ClockStopped(const Process&, TrueNs) {}  // uncounted by its own clock
  virtual void Died(const Process&, TrueNs) {}          // crashed, or stopped by its own word
  virtual void FaultsEnded(TrueNs) {}
  virtual void Finished(TrueNs) {}

 protected:
  Judge& judge_;
};

// "n1/p4": node 1, process 4.
std::string Name(const Process& process);
std::string Seconds(TrueNs t);  // "12.345678"
std::string Seconds(base::Duration d);
// "open token=5 until 17.200000" (true seconds)
std::string PermitText(const PermitShot& permit, const BootClock& clock);

}  // namespace leasehold::simulation
