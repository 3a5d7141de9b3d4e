#include "config/find_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/text.h"

namespace leasehold::config {
namespace {

bool IsRunnable(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string WhyNotRunnable(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    if (IsRunnable(program)) return "";
    struct stat status {};
    if (stat(program.c_str(), &status) != 0) return "there is no such file here";
    if (S_ISDIR(status.st_mode)) return "it is a directory";
    return "it is not executable for this user";
  }
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): one thread
  if (path == nullptr) return "the environment has no PATH to look for it in";
  for (const std::string_view directory : base::Split(path, ':')) {
    const std::string place(directory.empty() ? "." : directory);
    if (IsRunnable(place + "/" + program)) return "";
  }
  return "it is in no directory of PATH = " + base::Printable(path, 300);
}

}  // namespace leasehold::config
