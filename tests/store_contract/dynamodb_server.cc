#include "dynamodb_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/time.h"
#include "loop/loop.h"
#include "store/dynamodb_requests.h"

namespace leasehold::store_contract {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr base::Duration kStartPatience = base::Duration::Seconds(30);  // moto on a busy machine
constexpr int kCallSeconds = 10;
constexpr int kPortTries = 8;   // another process may take a port between our close and its bind
constexpr int kPollMillis = 5;  // between two looks at a starting server

Error Failed(const std::string& what) {
  return {ErrorCode::kInternal, what + ": " + std::strerror(errno)};
}

std::string ToolsFolder() {
  const char* const given = std::getenv("LEASEHOLD_AWS_TOOLS");
  return given != nullptr ? given : std::string(LEASEHOLD_TEST_DIR) + "/../build/tools/aws";
}

// In the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void Exec(const std::vector<char*>& argv, pid_t parent, int log) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(126);  // the parent died before the line above
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(127);
}

// The emulators look at the shape of a signature only.
std::string HttpRequest(uint16_t port, const std::string& operation, const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
         "\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.0\r\n"
         "X-Amz-Target: DynamoDB_20120810." +
         operation +
         "\r\nX-Amz-Date: 20260101T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 "
         "Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, "
         "Signature=00\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Sends it and takes all until the end.
Result<std::string> Exchange(uint16_t port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{kCallSeconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  char buffer[16384];
  ssize_t size = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  if (size == 0) size = send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  while (size > 0 && (size = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
    answer.append(buffer, static_cast<size_t>(size));
  }
  const Error failed = Failed("no answer from the emulator");
  close(fd);
  if (size < 0) return failed;
  return answer;
}

}  // namespace

Result<std::unique_ptr<DynamoDbServer>> DynamoDbServer::Start(Kind kind) {
  if (!std::filesystem::exists(ToolsFolder() + "/stamp")) {
    return Error{ErrorCode::kNotFound, "the AWS emulators are missing in " + ToolsFolder() +
                                           "; get them with: .ci/deps aws, or name another folder "
                                           "in LEASEHOLD_AWS_TOOLS"};
  }
  Status status;
  for (int i = 0; i < kPortTries; ++i) {
    std::unique_ptr<DynamoDbServer> server(new DynamoDbServer(kind));
    server->port_ = testing::ClosedPort();
    status = server->Launch();
    if (status.ok()) return server;
  }
  return status.error();
}

Status DynamoDbServer::Launch() {
  const std::string bin = ToolsFolder() + "/bin/";
  const std::string port = std::to_string(port_);
  std::vector<std::string> words = {bin + "moto_server", "-H", "127.0.0.1", "-p", port};
  if (kind_ == Kind::kDynalite) {
    words = {bin + "dynalite", "--host",          "127.0.0.1",       "--port", port,
             "--path",         dir_.File("data"), "--createTableMs", "0"};
  }
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int log = open(dir_.File("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return Failed("no log file for the emulator");
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) Exec(argv, parent, log);
  close(log);
  if (pid_ < 0) return Failed("cannot start the emulator");
  const base::MonoTime end = loop::Loop::Now() + kStartPatience;
  while (loop::Loop::Now() < end) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return Error{ErrorCode::kInternal, words[0] + " ended at once"};
    }
    if (Call("ListTables", "{}").ok()) return {};
    poll(nullptr, 0, kPollMillis);
  }
  return Error{ErrorCode::kTimeout, words[0] + " did not answer in time"};
}

Status DynamoDbServer::Freeze() {
  if (pid_ > 0 && kill(pid_, SIGSTOP) == 0) {
    int status = 0;  // it really stands still before anybody measures
    if (waitpid(pid_, &status, WUNTRACED) == pid_) return {};
  }
  return Failed("cannot freeze the emulator");
}

Status DynamoDbServer::Thaw() {
  if (pid_ <= 0 || kill(pid_, SIGCONT) == 0) return {};  // after a Kill there is nothing to thaw
  return Failed("cannot thaw the emulator");
}

void DynamoDbServer::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
}

Status DynamoDbServer::Restart() { return Launch(); }

Result<std::string> DynamoDbServer::Call(const std::string& operation,
                                         const std::string& body) const {
  Result<std::string> answer = Exchange(port_, HttpRequest(port_, operation, body));
  if (!answer) return answer.error();
  const size_t head = answer->find("\r\n\r\n");
  if (head != std::string::npos && answer->find(" 200 ") < answer->find("\r\n")) {
    return answer->substr(head + 4);
  }
  return Error{ErrorCode::kRefused, operation + ": " + *answer};
}

Status DynamoDbServer::CreateTable(const std::string& table) const {
  if (auto made = Call("CreateTable", store::CreateTableBody(table)); !made) return made.error();
  const base::MonoTime end = loop::Loop::Now() + kStartPatience;
  Result<std::string> there = std::string();
  do {
    there = Call("GetItem", store::GetItemBody(table, "-"));
    if (there.ok()) return {};
    poll(nullptr, 0, kPollMillis);
  } while (loop::Loop::Now() < end);
  return there.error();
}

}  // namespace leasehold::store_contract
