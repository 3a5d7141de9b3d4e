#include "loop/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>

namespace leasehold::loop {
namespace {

// An environment is at most a quarter of the stack limit (execve(2)), of which 8 MiB is usual; ours
// is set first, and what a program puts before it is small.
constexpr size_t kEnvironmentBytesMax = size_t{2} << 20;
constexpr size_t kStatBytesMax = 1024;  // a line of some 52 numbers
// Far more than a command leaves behind; a bound against a tree that grows while it is read.
constexpr size_t kDescendantsMax = 100000;

struct DirCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};

std::string ReadProcFile(const std::string& path, size_t bytes_max) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  std::array<char, 4096> buffer;
  ssize_t n = 0;
  while (text.size() < bytes_max && (n = read(fd, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  close(fd);
  return text;
}

// The numbers among the names of a directory of /proc.
std::vector<pid_t> NumbersIn(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, DirCloser> dir(opendir(path.c_str()));
  if (dir == nullptr) return numbers;
  while (const dirent* entry = readdir(dir.get())) {  // NOLINT: one DIR per thread is safe
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (number > 0 && *end == '\0') numbers.push_back(static_cast<pid_t>(number));
  }
  return numbers;
}

struct Stat {
  char state = 'X';  // as of a process that is not there any more
  pid_t parent = 0;
  pid_t group = 0;
};

// proc(5): "pid (name) state ppid pgrp ...", where the name may hold blanks and parentheses.
Stat StatOf(pid_t pid) {
  Stat stat;
  const std::string text = ReadProcFile("/proc/" + std::to_string(pid) + "/stat", kStatBytesMax);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return stat;
  stat.state = text[name_end + 2];
  char* end = nullptr;
  stat.parent = static_cast<pid_t>(std::strtol(text.c_str() + name_end + 4, &end, 10));
  stat.group = static_cast<pid_t>(std::strtol(end, nullptr, 10));
  return stat;
}

using Children = std::map<pid_t, std::vector<pid_t>>;

Children ReadAllChildren() {
  Children children;
  for (const pid_t pid : NumbersIn("/proc")) children[StatOf(pid).parent].push_back(pid);
  return children;
}

}  // namespace

std::vector<pid_t> DescendantsOf(pid_t root) {
  const Children children = ReadAllChildren();
  std::vector<pid_t> found = {root};
  for (size_t i = 0; i < found.size() && found.size() < kDescendantsMax; ++i) {
    const auto entry = children.find(found[i]);
    if (entry == children.end()) continue;
    found.insert(found.end(), entry->second.begin(), entry->second.end());
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> MembersOf(pid_t group) {
  std::vector<pid_t> found;
  for (const pid_t pid : NumbersIn("/proc")) {
    const Stat stat = StatOf(pid);
    if (stat.group == group && stat.state != 'Z' && stat.state != 'X') found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> WithEnvironment(const std::string& entry) {
  std::vector<pid_t> found;
  const std::string word = '\0' + entry + '\0';
  for (const pid_t pid : NumbersIn("/proc")) {
    if (pid == getpid()) continue;
    const std::string environment =
        '\0' + ReadProcFile("/proc/" + std::to_string(pid) + "/environ", kEnvironmentBytesMax);
    if (environment.find(word) != std::string::npos) found.push_back(pid);
  }
  return found;
}

}  // namespace leasehold::loop
