#include "config/find_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace leasehold::config {
namespace {

using State = FoundProgram::State;

// Where execvp(3) looks when there is no PATH (glibc).
constexpr const char* kDefaultPath = "/bin:/usr/bin";
constexpr size_t kPathShownMax = 300;

FoundProgram Look(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {State::kAbsent, "there is no such file here"};
  if (S_ISDIR(status.st_mode)) return {State::kNotExecutable, "it is a directory"};
  if (!S_ISREG(status.st_mode)) return {State::kNotExecutable, "it is no regular file"};
  if (access(path.c_str(), X_OK) == 0) return {State::kRunnable, ""};
  return {State::kNotExecutable, "it is not executable for this user"};
}

}  // namespace

FoundProgram FindProgram(const std::string& program) {
  if (program.empty()) return {State::kAbsent, "its name is empty"};
  if (program.find('/') != std::string::npos) return Look(program);
  const char* const given = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::string_view path = given == nullptr ? kDefaultPath : given;
  FoundProgram best{State::kAbsent,
                    "it is in no directory of PATH = " + base::Printable(path, kPathShownMax)};
  for (const std::string_view directory : base::Split(path, ':')) {
    FoundProgram found = Look((directory.empty() ? "." : std::string(directory)) + "/" + program);
    if (found.state == State::kRunnable) return found;
    if (found.state == State::kNotExecutable) best = std::move(found);
  }
  return best;
}

}  // namespace leasehold::config
