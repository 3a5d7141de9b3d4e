// simulate: runs seeds of the lease protocol's simulator.
//
//   simulate --seeds N [--first-seed S] [--fresh N] [--regressions FILE] [--replay-every K]
//   simulate --beyond-drift PERCENT --seeds N [--first-seed S]
//   simulate --seed S [--trace]
//
// A violation prints the failing seed first, then the rule that was broken, then the last of the
// trace, and exits with 1; the last line of success counts the seeds. Every run is single-threaded
// and a pure function of its seed and of this program. Fresh seeds are drawn by the clock; which
// ones is said, so that they are as reproducible as others.
//
// Beyond the drift bound promises may break. Then the run fails unless it was noticed: some seeds
// must show two permits at one time (or the checkers are blind), and the fence must have kept the
// order in all of them.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "simulation/world.h"

namespace leasehold::simulation {
namespace {

constexpr size_t kTraceLines = 80;      // enough to see what led there, on two screens
constexpr uint64_t kReplayEvery = 16;   // replaying costs about as much as running
constexpr double kProgressEvery = 5.0;  // seconds of CPU time

struct Arguments {
  uint64_t seeds = 0;
  uint64_t first_seed = 1;
  uint64_t fresh = 0;
  uint64_t beyond_drift = 0;  // percent
  std::optional<uint64_t> seed;
  bool trace = false;
  uint64_t replay_every = kReplayEvery;
  std::string regressions;
};

// For the handler of SIGABRT alone: which seed the engine's CHECK stopped.
volatile unsigned long long running_seed = 0;

void OnAbort(int) {
  char line[96];
  const int length =
      std::snprintf(line, sizeof line, "FAILED seed %llu: the program aborted (see above)\n",
                    static_cast<unsigned long long>(running_seed));
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) _exit(1);
  std::signal(SIGABRT, SIG_DFL);
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

Outcome RunSeed(uint64_t seed, const RunOptions& options) {
  running_seed = seed;
  const Scenario scenario = DrawScenario(seed);
  World world(scenario, options);
  return world.Run();
}

void PrintTrace(uint64_t seed, const Outcome& outcome) {
  std::fputs(DrawScenario(seed).Describe().c_str(), stdout);
  for (const std::string& line : outcome.trace) std::printf("%s\n", line.c_str());
}

// Runs the seed again, traced, and says what went wrong.
void PrintFailure(uint64_t seed, const RunOptions& options) {
  RunOptions traced = options;
  traced.trace = true;
  traced.trace_lines = kTraceLines;
  const Outcome outcome = RunSeed(seed, traced);
  std::printf("FAILED seed %llu\n", static_cast<unsigned long long>(seed));
  if (!outcome.violation) {
    std::printf("and passed when it was run again: the simulator is not deterministic\n");
    return;
  }
  std::printf("rule: %s\nwhat: %s (true time %s s)\n", outcome.violation->rule.c_str(),
              outcome.violation->detail.c_str(), Seconds(outcome.violation->at).c_str());
  PrintTrace(seed, outcome);
  std::printf("run it again with: simulate --seed %llu --trace\n",
              static_cast<unsigned long long>(seed));
}

std::vector<uint64_t> ReadRegressions(const std::string& path) {
  std::vector<uint64_t> seeds;
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "--regressions %s: cannot be read\n", path.c_str());
    std::exit(2);
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = base::Trim(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    const auto seed = base::ParseUint64(text);
    if (!seed.ok()) {
      std::fprintf(stderr, "%s:%d: \"%s\" is not a seed; a line is: SEED  # symptom\n",
                   path.c_str(), number, line.c_str());
      std::exit(2);
    }
    seeds.push_back(*seed);
  }
  return seeds;
}

[[noreturn]] void Usage() {
  std::fprintf(stderr,
               "usage: simulate --seeds N [--first-seed S] [--fresh N] [--regressions FILE] "
               "[--replay-every K]\n       simulate --beyond-drift PERCENT --seeds N "
               "[--first-seed S]\n       simulate --seed S [--trace]\n");
  std::exit(2);
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  const auto number = [&](int& i) {
    const auto value = i + 1 < argc ? base::ParseUint64(argv[++i]) : base::ParseUint64("");
    if (!value.ok()) Usage();
    return *value;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--seeds") {
      arguments.seeds = number(i);
    } else if (name == "--first-seed") {
      arguments.first_seed = number(i);
    } else if (name == "--fresh") {
      arguments.fresh = number(i);
    } else if (name == "--beyond-drift") {
      arguments.beyond_drift = number(i);
    } else if (name == "--seed") {
      arguments.seed = number(i);
    } else if (name == "--replay-every") {
      arguments.replay_every = number(i);
    } else if (name == "--trace") {
      arguments.trace = true;
    } else if (name == "--regressions" && i + 1 < argc) {
      arguments.regressions = argv[++i];
    } else {
      Usage();
    }
  }
  if (!arguments.seed && arguments.seeds == 0 && arguments.fresh == 0 &&
      arguments.regressions.empty()) {
    Usage();
  }
  return arguments;
}

int RunOne(uint64_t seed, bool trace) {
  RunOptions options;
  options.check_replay = true;
  if (trace) {
    options.trace = true;
    PrintTrace(seed, RunSeed(seed, options));
    options.trace = false;
  }
  if (!RunSeed(seed, options).violation) {
    std::printf("seed %llu passed\n", static_cast<unsigned long long>(seed));
    return 0;
  }
  PrintFailure(seed, options);
  return 1;
}

// What has been run so far, and how fast.
class Progress {
 public:
  explicit Progress(size_t of) : of_(of) {}

  void Count(const Outcome& outcome) {
    ++done_;
    steps_ += outcome.steps;
    seconds_ += static_cast<double>(outcome.simulated) / 1e9;
    if (CpuSeconds() - reported_ < kProgressEvery) return;
    reported_ = CpuSeconds();
    std::printf("%llu of %zu seeds", static_cast<unsigned long long>(done_), of_);
    Rates();
  }

  void Rates() const {
    const double took = CpuSeconds() - began_ + 1e-9;
    std::printf(
        " (per CPU second: %.0f seeds, %.0f lease-seconds = %.1f hours, %.0f engine steps)\n",
        static_cast<double>(done_) / took, seconds_ / took, seconds_ / took / 3600,
        static_cast<double>(steps_) / took);
    std::fflush(stdout);
  }

  uint64_t done() const { return done_; }

 private:
  const size_t of_;
  const double began_ = CpuSeconds();
  double reported_ = began_;
  double seconds_ = 0;
  uint64_t steps_ = 0;
  uint64_t done_ = 0;
};

// Never one of the fixed seeds, which count from 1.
uint64_t FreshSeed() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return 1'000'000'000 + static_cast<uint64_t>(now.tv_sec % 1'000'000) * 1'000 +
         static_cast<uint64_t>(now.tv_nsec) % 1'000'000'000 / 1'000'000;
}

int RunMany(const Arguments& arguments) {
  std::vector<uint64_t> seeds;
  if (!arguments.regressions.empty()) seeds = ReadRegressions(arguments.regressions);
  const size_t regressions = seeds.size();
  for (uint64_t i = 0; i < arguments.seeds; ++i) seeds.push_back(arguments.first_seed + i);
  if (arguments.fresh > 0) {
    const uint64_t first = FreshSeed();
    std::printf("fresh seeds: %llu from %llu on\n",
                static_cast<unsigned long long>(arguments.fresh),
                static_cast<unsigned long long>(first));
    for (uint64_t i = 0; i < arguments.fresh; ++i) seeds.push_back(first + i);
  }
  Progress progress(seeds.size());
  for (const uint64_t seed : seeds) {
    RunOptions options;
    options.check_replay = arguments.replay_every != 0 &&
                           (progress.done() < regressions || seed % arguments.replay_every == 0);
    const Outcome outcome = RunSeed(seed, options);
    if (outcome.violation) {
      PrintFailure(seed, options);
      return 1;
    }
    progress.Count(outcome);
  }
  std::printf("%llu seeds passed, 0 failed", static_cast<unsigned long long>(progress.done()));
  if (regressions > 0) std::printf(", %zu of them regressions", regressions);
  progress.Rates();
  return 0;
}

int RunBeyondDrift(const Arguments& arguments) {
  Progress progress(arguments.seeds);
  uint64_t noticed = 0;
  for (uint64_t i = 0; i < arguments.seeds; ++i) {
    const uint64_t seed = arguments.first_seed + i;
    running_seed = seed;
    const Scenario scenario =
        BeyondDrift(DrawScenario(seed), static_cast<double>(arguments.beyond_drift));
    RunOptions options;
    options.only_what_fencing_promises = true;
    World world(scenario, options);
    const Outcome outcome = world.Run();
    if (outcome.violation) {
      std::printf("FAILED seed %llu beyond the drift bound\nrule: %s\nwhat: %s\n",
                  static_cast<unsigned long long>(seed), outcome.violation->rule.c_str(),
                  outcome.violation->detail.c_str());
      return 1;
    }
    if (outcome.overlaps > 0) ++noticed;
    progress.Count(outcome);
  }
  std::printf(
      "%llu seeds with clocks off by up to %llu %%: two permits at one time in %llu of them, "
      "order kept by the fence in all",
      static_cast<unsigned long long>(progress.done()),
      static_cast<unsigned long long>(arguments.beyond_drift),
      static_cast<unsigned long long>(noticed));
  progress.Rates();
  if (noticed > 0) return 0;
  std::printf("FAILED: no run showed what such clocks do; the overlap checker sees nothing\n");
  return 1;
}

}  // namespace
}  // namespace leasehold::simulation

int main(int argc, char** argv) {
  using namespace leasehold::simulation;
  std::signal(SIGABRT, OnAbort);
  const Arguments arguments = Parse(argc, argv);
  if (arguments.seed) return RunOne(*arguments.seed, arguments.trace);
  return arguments.beyond_drift > 0 ? RunBeyondDrift(arguments) : RunMany(arguments);
}
