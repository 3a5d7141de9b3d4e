// The replay program of one target: each file of its corpus is a case, and a fixed number of
// mutants is one more. Inputs run in a child process, so that whatever ends it (a CHECK, a signal,
// a sanitizer, a hang) is reported with the input that did it, which is kept in a file.
//
//   fuzz_<target>            the tests
//   fuzz_<target> FILE...    these inputs, in this process, for a debugger
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "fuzz/mutator.h"
#include "fuzz/replay_target.h"

namespace leasehold::fuzz {
namespace {

namespace fs = std::filesystem;

// No input takes a millisecond when all is well; what takes so long hangs, also on a busy machine
// and under the sanitizers.
constexpr unsigned kInputSecondsMax = 20;

struct Seed {
  std::string name;
  std::string bytes;
};

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good(), "an input cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path InFuzz(const char* folder, const char* suffix) {
  return fs::path(kReplayTarget.fuzz_dir) / folder / (std::string(kReplayTarget.name) + suffix);
}

const std::vector<Seed>& Seeds() {
  static const std::vector<Seed> seeds = [] {
    std::vector<Seed> found;
    for (const auto& entry : fs::directory_iterator(InFuzz("corpus", ""))) {
      found.push_back({entry.path().filename().string(), ReadFile(entry.path())});
    }
    std::sort(found.begin(), found.end(),
              [](const Seed& a, const Seed& b) { return a.name < b.name; });
    return found;
  }();
  return seeds;
}

std::vector<std::string> Dictionary() {
  const fs::path path = InFuzz("dict", ".dict");
  if (!fs::exists(path)) return {};
  return ParseDictionary(ReadFile(path));
}

// Exactly as large as it is, so that AddressSanitizer sees a read past its end.
void RunInput(const std::string& bytes) {
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  (void)LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    return "took more than " + std::to_string(kInputSecondsMax) + " s";
  }
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

// Runs inputs 0 .. count - 1 in a child. What ended it before its time is a failure, with that
// input's number in *failed.
testing::AssertionResult RunAll(size_t count, const std::function<std::string(size_t)>& input,
                                size_t* failed) {
  void* shared =
      mmap(nullptr, sizeof(size_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED, "no memory to share with the child");
  auto* at = static_cast<volatile size_t*>(shared);
  std::fflush(nullptr);
  const pid_t child = fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) {
    for (size_t i = 0; i < count; ++i) {
      *at = i;
      alarm(kInputSecondsMax);
      RunInput(input(i));
    }
    std::exit(0);  // not _exit: the leak checker looks now
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child, "the child is not ours");
  *failed = *at;
  munmap(shared, sizeof(size_t));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << HowItEnded(status);
}

class Replay : public testing::Test {
 public:
  explicit Replay(const Seed& seed) : seed_(seed) {}
  void TestBody() override {
    size_t failed = 0;
    EXPECT_TRUE(RunAll(
        1, [this](size_t) { return seed_.bytes; }, &failed))
        << "by tests/fuzz/corpus/" << kReplayTarget.name << "/" << seed_.name;
  }

 private:
  const Seed& seed_;
};

class Mutants : public testing::Test {
 public:
  void TestBody() override {
    std::vector<std::string> corpus;
    for (const Seed& seed : Seeds()) corpus.push_back(seed.bytes);
    const std::vector<std::string> dictionary = Dictionary();
    const Mutator mutator(corpus, dictionary, kReplayTarget.bytes_max);
    size_t failed = 0;
    const auto result = RunAll(
        kReplayTarget.mutants, [&mutator](size_t i) { return mutator.Make(i); }, &failed);
    if (result) return;
    const std::string path = std::string(kReplayTarget.failed_dir) + "/" + kReplayTarget.name +
                             "-mutant-" + std::to_string(failed);
    std::ofstream(path, std::ios::binary) << mutator.Make(failed);
    ADD_FAILURE() << result.message() << ", by mutant " << failed << "; again: fuzz_"
                  << kReplayTarget.name << " " << path;
  }
};

void RegisterCases() {
  const std::string suite = std::string("fuzz_") + kReplayTarget.name;
  for (const Seed& seed : Seeds()) {
    std::string name = seed.name.substr(0, seed.name.find('.'));
    testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [&seed]() -> testing::Test* { return new Replay(seed); });
  }
  testing::RegisterTest(suite.c_str(), "mutants_of_the_corpus", nullptr, nullptr, __FILE__,
                        __LINE__, []() -> testing::Test* { return new Mutants; });
}

}  // namespace
}  // namespace leasehold::fuzz

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) {
    for (int i = 1; i < argc; ++i) {
      std::printf("%s\n", argv[i]);
      std::fflush(stdout);
      leasehold::fuzz::RunInput(leasehold::fuzz::ReadFile(argv[i]));
    }
    return 0;
  }
  leasehold::fuzz::RegisterCases();
  return RUN_ALL_TESTS();
}
