#include "helper_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace leasehold::store_contract {

HelperProcess::HelperProcess(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"/proc/self/exe"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    ADD_FAILURE() << "no pipe for a helper process";
    return;
  }
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that aborts leaves nothing behind
    dup2(ends[1], STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  out_ = ends[0];
}

HelperProcess::~HelperProcess() {
  if (pid_ > 0) {
    Signal(SIGKILL);
    Wait();
  }
  if (out_ >= 0) close(out_);
}

std::string HelperProcess::Line() {
  constexpr int kPatienceMillis = 20000;
  std::string line;
  char c = 0;
  while (true) {
    pollfd ready = {out_, POLLIN, 0};
    if (poll(&ready, 1, kPatienceMillis) <= 0 || read(out_, &c, 1) != 1) return "";
    if (c == '\n') return line;
    line += c;
  }
}

void HelperProcess::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

int HelperProcess::Wait() {
  int status = 0;
  if (pid_ <= 0 || waitpid(pid_, &status, 0) != pid_) return -1;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace leasehold::store_contract
