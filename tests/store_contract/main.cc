// The contract suite, or one of its helper processes:
//   --file-race DIR PROCESS LEASE N   reads and writes token + 1 until N of its writes applied
//   --file-hold DIR PROCESS LEASE     takes the lease, prints "holding <boot clock ns>", stays
//   --file-open DIR PROCESS UID       becomes UID, opens the store, creates a lease "as-uid",
//   probes;
//                                     prints one line each: "open ...", "cas ...", "probe ..."
//   --lock PATH                       locks PATH, prints "locked", stays
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "observe/log.h"
#include "store/file_store.h"

namespace leasehold::store_contract {
namespace {

using store::CasResult;
using store::ReadResult;

constexpr base::Duration kPatience = base::Duration::Seconds(60);

lease::Record HelperRecord(const std::string& lease, const std::string& process_id) {
  lease::Record record;
  record.lease = lease;
  record.node_id = "node-helper";
  record.process_id = process_id;
  record.token = 1;
  record.beat = 1;
  record.ttl_ms = 10000;
  return record;
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string Text(const base::Status& status) {
  return status.ok()
             ? "ok"
             : std::string(base::ErrorCodeName(status.error().code)) + " " + status.error().message;
}

// An open file store and blocking calls on it, for a process that does one thing after the other.
class Helper {
 public:
  Helper(const std::string& dir, std::string process_id)
      : process_id_(std::move(process_id)), log_(observe::Log::Silent()) {
    store::FileOptions options;
    options.dir = dir;
    options.durability = store::Durability::kProcessCrashSafe;
    store_ = store::MakeFileStore(loop_, options, "contract", process_id_, *log_);
  }

  base::Status Open() {
    base::Status opened;
    store_->Open([](std::string_view, bool, const std::string&) {},
                 [&](base::Status status) {
                   opened = std::move(status);
                   loop_.Stop();
                 });
    loop_.Run();
    return opened;
  }

  ReadResult Read(const std::string& lease) {
    ReadResult answer;
    store_->Read(lease, kPatience, [&](ReadResult result) {
      answer = std::move(result);
      loop_.Stop();
    });
    loop_.Run();
    return answer;
  }

  CasResult Cas(const std::string& lease, const std::optional<lease::Version>& expected,
                const lease::Record& record) {
    CasResult answer;
    store_->CompareAndSet(lease, expected, record, kPatience, [&](CasResult result) {
      answer = std::move(result);
      loop_.Stop();
    });
    loop_.Run();
    return answer;
  }

  base::Status Probe(const std::string& lease) {
    base::Status answer;
    store_->ProbeWrite(lease, kPatience, [&](base::Status status) {
      answer = std::move(status);
      loop_.Stop();
    });
    loop_.Run();
    return answer;
  }

  const std::string& process_id() const { return process_id_; }

 private:
  std::string process_id_;
  loop::Loop loop_;
  std::unique_ptr<observe::Log> log_;
  std::unique_ptr<store::LeaseStore> store_;
};

// Exit code 0 if exactly N writes applied and nothing was ambiguous or refused.
int Race(Helper& helper, const std::string& lease, int writes) {
  if (!helper.Open().ok()) return 2;
  uint64_t beat = 0;
  for (int applied = 0; applied < writes;) {
    const ReadResult read = helper.Read(lease);
    std::optional<lease::Version> expected;
    lease::Record next = HelperRecord(lease, helper.process_id());
    if (read.outcome == ReadResult::Outcome::kRecord) {
      expected = read.version;
      next.token = read.record.token + 1;
    } else if (read.outcome != ReadResult::Outcome::kAbsent) {
      return 3;
    }
    next.beat = ++beat;
    const CasResult answer = helper.Cas(lease, expected, next);
    if (answer.outcome == CasResult::Outcome::kApplied) {
      ++applied;
    } else if (answer.outcome != CasResult::Outcome::kConflict) {
      std::fprintf(stderr, "race: %s\n", answer.error.c_str());
      return 4;
    }
  }
  return 0;
}

int Hold(Helper& helper, const std::string& lease) {
  if (!helper.Open().ok()) return 2;
  const CasResult taken = helper.Cas(lease, std::nullopt, HelperRecord(lease, helper.process_id()));
  Say(taken.outcome == CasResult::Outcome::kApplied ? "holding" : "not holding: " + taken.error);
  while (true) pause();
}

// From now on flock answers `error_number` (0: success) and locks nothing, as on a filesystem that
// cannot lock, or only says that it can.
bool BreakFlock(uint32_t error_number) {
  std::array<sock_filter, 4> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error_number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter = {static_cast<uint16_t>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// A small filesystem of this process alone at `dir`.
bool MountSmall(const std::string& dir) {
  std::filesystem::create_directories(dir);
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", dir.c_str(), "tmpfs", 0, "size=256k,mode=0777") == 0;
}

void Fill(const std::string& dir) {
  std::ofstream file(dir + "/filler", std::ios::binary);
  const std::string page(4096, 'x');
  while (file.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
  }
}

int OpenAs(Helper& helper, const std::string& dir, const std::string& uid, const std::string& how) {
  if (how == "full" && !MountSmall(dir)) {
    Say("skip");
    return 0;
  }
  if (how == "no-locks" && !BreakFlock(ENOLCK)) return 7;
  if (how == "fake-locks" && !BreakFlock(0)) return 7;
  if (setgid(static_cast<gid_t>(std::stoul(uid))) != 0) return 5;
  if (setuid(static_cast<uid_t>(std::stoul(uid))) != 0) return 5;
  Say("open " + Text(helper.Open()));
  if (how == "full") Fill(dir);
  const CasResult taken =
      helper.Cas("as-uid", std::nullopt, HelperRecord("as-uid", helper.process_id()));
  const char* word = taken.outcome == CasResult::Outcome::kApplied   ? "applied"
                     : taken.outcome == CasResult::Outcome::kRefused ? "refused"
                                                                     : "other";
  Say(std::string("cas ") + word + " " + taken.error);
  Say("probe " + Text(helper.Probe("as-uid")));
  return 0;
}

int Lock(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0660);
  if (fd < 0 || flock(fd, LOCK_EX) != 0) return 2;
  Say("locked");
  while (true) pause();
}

// The helper's exit code, or nullopt if this is the suite itself.
std::optional<int> RunHelper(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "--lock") return Lock(words[1]);
  if (words.size() < 4) return std::nullopt;
  Helper helper(words[1], words[2]);
  int code = 6;
  if (words[0] == "--file-race") code = Race(helper, words[3], std::stoi(words.at(4)));
  if (words[0] == "--file-hold") code = Hold(helper, words[3]);
  if (words[0] == "--file-open") code = OpenAs(helper, words[1], words[3], words.at(4));
  std::fflush(stdout);
  _exit(code);  // like a crash: nothing is closed in order
}

}  // namespace
}  // namespace leasehold::store_contract

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool helper = !words.empty() && (words[0] == "--lock" || words[0].rfind("--file-", 0) == 0);
  if (helper) return leasehold::store_contract::RunHelper(words).value_or(6);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
