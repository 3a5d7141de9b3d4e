#include "store/file_store.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "loop/timer.h"
#include "store/file_hints.h"
#include "store/file_register.h"
#include "store/worker_calls.h"

namespace leasehold::store {
namespace {

// Open has no time-out of its own: a directory on a disk that hangs is a store that cannot be
// reached now, not a reason to wait for ever. As long as redis may take to connect, and to spare.
constexpr base::Duration kOpenTimeout = base::Duration::Seconds(10);

// How long Close waits for workers that are still busy, so that the process file can be taken away
// in order. Without it only a standby's TTL is lost, so not long: a hung disk must not hold up
// exit.
constexpr base::Duration kCloseTimeout = base::Duration::Seconds(1);

constexpr base::Duration kCloseCheck = base::Duration::Millis(2);  // workers end in about that

// A directory that could not be used at the start, for a reason that may pass.
constexpr base::Duration kPrepareAgain = base::Duration::Seconds(2);

constexpr const char* kClosing = "the store is being closed";

using PlacePtr = std::shared_ptr<const FilePlace>;
using ProcessFilePtr = std::shared_ptr<ProcessFile>;

std::string_view Word(const base::Status& status) {
  if (status.ok()) return "ok";
  const bool passes = status.error().code == base::ErrorCode::kUnavailable ||
                      status.error().code == base::ErrorCode::kTimeout;
  return passes ? "ambiguous" : "refused";
}

class FileStore final : public LeaseStore {
 public:
  FileStore(loop::Loop& loop, const FileOptions& options, std::string prefix,
            std::string process_id, observe::Log& log);

  void Open(TroubleCallback trouble, std::function<void(base::Status)> done) override;
  void Read(std::string_view lease, base::Duration timeout, ReadCallback done) override;
  void CompareAndSet(std::string_view lease, const std::optional<lease::Version>& expected,
                     const lease::Record& record, base::Duration timeout,
                     CasCallback done) override;
  void Watch(std::string_view lease, WatchCallback hint) override;
  void ProbeWrite(std::string_view lease, base::Duration timeout,
                  std::function<void(base::Status)> done) override;
  std::vector<int> DeathProofs() const override {
    return *process_file_ == nullptr ? std::vector<int>{}
                                     : std::vector<int>{(*process_file_)->fd()};
  }
  StoreStats stats() const override { return stats_; }
  std::string Describe() const override { return "file store in " + place_->dir; }
  void Close(std::function<void()> done) override;

 private:
  // What an attempt at a compare-and-set reads and makes; the worker's while it runs.
  struct CasWork {
    CasRequest request;
    ProcessFilePtr process_file;
    CasAttempt attempt;
  };

  void Start(base::Duration timeout, WorkerCalls::Call call);
  void Count(std::string operation, std::string_view word, base::MonoTime since);
  void Prepare(std::function<void(const base::Status&)> done);
  void PrepareAgain();
  static void Keep(ProcessFilePtr& kept, std::optional<ProcessFile>& made);
  void CloseStep();
  void Closed();

  loop::Loop& loop_;
  observe::Log& log_;
  PlacePtr place_;
  // Set by the first attempt that made one, also by one whose call was given up; outlives this
  // object in work that still runs. Never given back while a record may name us.
  std::shared_ptr<ProcessFilePtr> process_file_ = std::make_shared<ProcessFilePtr>();
  std::set<std::string> written_;  // leases that a compare-and-set was ever started for
  StoreStats stats_;
  WorkerCalls calls_;
  FileHints hints_;
  loop::Timer prepare_again_;
  std::function<void()> closing_;  // from Close() until it has called back
  bool closed_ = false;
  bool retiring_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  loop::Timer close_check_;
  base::MonoTime close_deadline_;
};

FileStore::FileStore(loop::Loop& loop, const FileOptions& options, std::string prefix,
                     std::string process_id, observe::Log& log)
    : loop_(loop),
      log_(log),
      place_(std::make_shared<const FilePlace>(
          FilePlace{options.dir, std::move(prefix), std::move(process_id),
                    options.durability == Durability::kStrict})),
      calls_(loop),
      hints_(loop, *place_, log),
      prepare_again_(loop, [this] { PrepareAgain(); }),
      close_check_(loop, [this] { CloseStep(); }) {}

void FileStore::Count(std::string operation, std::string_view word, base::MonoTime since) {
  ++stats_.operations[{std::move(operation), std::string(word)}];
  stats_.connected = word == "ok" || word == "conflict";
  stats_.last_latency = loop::Loop::Now() - since;
}

// ---- open ----

void FileStore::Open(TroubleCallback, std::function<void(base::Status)> done) {
  Prepare([this, done = std::move(done)](const base::Status& status) {
    if (status.ok() || Word(status) == "refused") return done(status);
    log_.Warn("store.open", "the store's directory cannot be used yet; leases wait for it",
              {{"dir", place_->dir}, {"error", status.error().message}});
    prepare_again_.StartAfter(kPrepareAgain);
    done({});
  });
}

void FileStore::Prepare(std::function<void(const base::Status&)> done) {
  struct Work {
    base::Status status;
    std::optional<ProcessFile> made;
  };
  const auto work = std::make_shared<Work>();
  const base::MonoTime since = loop::Loop::Now();
  WorkerCalls::Call call;
  call.work = [work, place = place_, now = loop::Loop::WallNow()](const std::atomic<bool>&) {
    base::Result<ProcessFile> result = PrepareDirectory(*place, now);
    if (result.ok()) {
      work->made = std::move(result).value();
    } else {
      work->status = result.error();
    }
    return WorkerCalls::Attempt{};
  };
  call.settle = [work, kept = process_file_] { Keep(*kept, work->made); };
  call.finish = [this, work, since, done] {
    Count("connect", Word(work->status), since);
    done(work->status);
  };
  call.give_up = [this, since, done = std::move(done)](const std::string& why) {
    const base::Status status = base::Error{base::ErrorCode::kTimeout, why};
    Count("connect", Word(status), since);
    done(status);
  };
  Start(kOpenTimeout, std::move(call));
}

void FileStore::PrepareAgain() {
  // A compare-and-set or a late worker may have made it meanwhile.
  if (*process_file_ != nullptr) return;
  Prepare([this](const base::Status& status) {
    if (status.ok()) return log_.Info("store.open", "the store's directory can be used now");
    prepare_again_.StartAfter(kPrepareAgain);
  });
}

void FileStore::Keep(ProcessFilePtr& kept, std::optional<ProcessFile>& made) {
  if (made) kept = std::make_shared<ProcessFile>(std::move(*made));
  made.reset();
}

// ---- calls ----

void FileStore::Start(base::Duration timeout, WorkerCalls::Call call) {
  if (!closed_) return calls_.Start(timeout, std::move(call));
  // After Close nothing may touch the register any more, but the call wants its answer.
  call.work = [](const std::atomic<bool>&) {
    return WorkerCalls::Attempt{.busy = true, .waiting = ""};
  };
  call.give_up = [give_up = std::move(call.give_up)](const std::string&) { give_up(kClosing); };
  calls_.Start(base::Duration::Zero(), std::move(call));
}

void FileStore::Read(std::string_view lease, base::Duration timeout, ReadCallback done) {
  const auto result = std::make_shared<ReadResult>();
  const base::MonoTime since = loop::Loop::Now();
  WorkerCalls::Call call;
  call.work = [result, place = place_, name = std::string(lease)](const std::atomic<bool>&) {
    *result = ReadRecord(*place, name);
    return WorkerCalls::Attempt{};
  };
  call.finish = [this, result, since, done, name = std::string(lease)] {
    Count("read", ResultName(result->outcome), since);
    if (result->outcome == ReadResult::Outcome::kRecord) hints_.Seen(name, result->record);
    done(std::move(*result));
  };
  call.give_up = [this, since, done = std::move(done)](const std::string& why) {
    Count("read", ResultName(ReadResult::Outcome::kAmbiguous), since);
    ReadResult none;
    none.error = why;
    done(std::move(none));
  };
  Start(timeout, std::move(call));
}

void FileStore::CompareAndSet(std::string_view lease, const std::optional<lease::Version>& expected,
                              const lease::Record& record, base::Duration timeout,
                              CasCallback done) {
  const auto work = std::make_shared<CasWork>();
  work->request = {std::string(lease), expected, record};
  work->process_file = *process_file_;
  written_.insert(work->request.lease);
  const base::MonoTime since = loop::Loop::Now();
  WorkerCalls::Call call;
  call.work = [work, place = place_](const std::atomic<bool>& cancelled) {
    work->attempt = TryCompareAndSet(*place, work->request, work->process_file.get(), cancelled);
    return WorkerCalls::Attempt{work->attempt.busy, work->attempt.result.error};
  };
  call.settle = [work, kept = process_file_] {
    Keep(*kept, work->attempt.process_file);
    work->process_file = *kept;
  };
  call.finish = [this, work, since, done] {
    CasResult& result = work->attempt.result;
    Count("cas", ResultName(result.outcome), since);
    if (result.record) hints_.Seen(work->request.lease, *result.record);
    if (result.outcome == CasResult::Outcome::kApplied) {
      hints_.Seen(work->request.lease, work->request.record);
    }
    done(std::move(result));
  };
  call.give_up = [this, since, done = std::move(done)](const std::string& why) {
    Count("cas", ResultName(CasResult::Outcome::kAmbiguous), since);
    CasResult unknown;
    unknown.error = why;
    done(std::move(unknown));
  };
  Start(timeout, std::move(call));
}

void FileStore::ProbeWrite(std::string_view, base::Duration timeout,
                           std::function<void(base::Status)> done) {
  const auto status = std::make_shared<base::Status>();
  const base::MonoTime since = loop::Loop::Now();
  WorkerCalls::Call call;
  call.work = [status, place = place_](const std::atomic<bool>&) {
    *status = ProbeDirectory(*place);
    return WorkerCalls::Attempt{};
  };
  call.finish = [this, status, since, done] {
    Count("probe", Word(*status), since);
    done(*status);
  };
  call.give_up = [this, since, done = std::move(done)](const std::string& why) {
    const base::Status late = base::Error{base::ErrorCode::kTimeout, why};
    Count("probe", Word(late), since);
    done(late);
  };
  Start(timeout, std::move(call));
}

void FileStore::Watch(std::string_view lease, WatchCallback hint) {
  hints_.Watch(std::string(lease), std::move(hint));
}

// ---- close ----

void FileStore::Close(std::function<void()> done) {
  CHECK(!std::exchange(closed_, true), "a store is closed once");
  closing_ = std::move(done);
  hints_.Stop();
  prepare_again_.Stop();
  close_deadline_ = loop::Loop::Now() + kCloseTimeout;
  close_check_.StartAfter(base::Duration::Zero());
}

// The process file may go only when no worker can write any more.
void FileStore::CloseStep() {
  calls_.GiveUpAll(kClosing);
  const bool time_over = loop::Loop::Now() >= close_deadline_;
  const bool quiet = calls_.running() == 0 && !retiring_;
  if (!quiet && !time_over) return close_check_.StartAfter(kCloseCheck);
  if (!quiet || *process_file_ == nullptr) return Closed();
  retiring_ = true;
  close_check_.StartAt(close_deadline_);
  const ProcessFilePtr own = std::exchange(*process_file_, nullptr);
  loop_.Work(
      [own, place = place_, leases = std::vector<std::string>(written_.begin(), written_.end())] {
        RetireProcessFile(*place, leases, std::move(*own));
      },
      [this, alive = std::weak_ptr<bool>(alive_)] {
        // Its time may have been over already, and this object gone.
        if (alive.expired() || closing_ == nullptr) return;
        Closed();
      });
}

void FileStore::Closed() {
  close_check_.Stop();
  calls_.GiveUpAll(kClosing);  // what was asked since
  const std::function<void()> done = std::move(closing_);
  closing_ = nullptr;
  done();  // may end this object
}

}  // namespace

std::unique_ptr<LeaseStore> MakeFileStore(loop::Loop& loop, const FileOptions& options,
                                          std::string prefix, std::string process_id,
                                          observe::Log& log) {
  return std::make_unique<FileStore>(loop, options, std::move(prefix), std::move(process_id), log);
}

}  // namespace leasehold::store
