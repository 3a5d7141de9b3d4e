#include "store/file_hints.h"

#include <array>
#include <utility>
#include <vector>

#include "store/death_proof.h"
#include "store/file_io.h"
#include "store/file_register.h"

namespace leasehold::store {
namespace {

// A failed inotify (too many instances or watches, a missing directory) may be repaired meanwhile.
constexpr base::Duration kArmAgain = base::Duration::Seconds(5);

// The close of a dying process's file is told just before its lock is dropped, and by how much
// depends on what else it had open; a standby is to have proof within 100 ms of a kill -9.
constexpr std::array<base::Duration, 3> kAfterDeath = {
    base::Duration::Millis(2), base::Duration::Millis(10), base::Duration::Millis(50)};

}  // namespace

struct FileHints::Watched {
  std::string lease;
  std::string file_name;
  LeaseStore::WatchCallback hint;
  std::optional<Hands> seen;
  bool peeking = false;
  bool peek_again = false;  // it changed while we looked
  std::vector<std::unique_ptr<loop::Timer>> after_death;
};

FileHints::FileHints(loop::Loop& loop, const FilePlace& place, observe::Log& log)
    : loop_(loop), place_(place), log_(log), alive_(std::make_shared<bool>(true)) {
  arm_ = std::make_unique<loop::Timer>(loop_, [this] { Arm(); });
}

FileHints::~FileHints() { Stop(); }

void FileHints::Stop() {
  *alive_ = false;
  arm_.reset();
  records_.reset();
  processes_.reset();
  watched_.clear();
}

void FileHints::Watch(const std::string& lease, LeaseStore::WatchCallback hint) {
  if (!*alive_) return;
  auto watched = std::make_shared<Watched>();
  watched->lease = lease;
  watched->file_name = LeaseFileName(place_.prefix, lease) + kRecordEnding;
  watched->hint = std::move(hint);
  for (const base::Duration pause : kAfterDeath) {
    (void)pause;
    watched->after_death.push_back(
        std::make_unique<loop::Timer>(loop_, [this, lease, alive = alive_] {
          if (!*alive) return;
          const auto found = watched_.find(lease);
          if (found != watched_.end()) Tell(*found->second, WatchEvent::Kind::kChangedHands);
        }));
  }
  watched_[lease] = std::move(watched);
  arm_->StartAfter(base::Duration::Zero());
}

void FileHints::Seen(const std::string& lease, const lease::Record& record) {
  const auto found = watched_.find(lease);
  if (found == watched_.end()) return;
  found->second->seen = Hands{record.process_id, record.token, record.state};
}

base::Status FileHints::OpenWatches() {
  if (std::exchange(reopen_, false)) {
    records_.reset();
    processes_.reset();
  }
  if (records_ == nullptr) {
    base::Result<std::unique_ptr<loop::FileWatch>> opened =
        loop::FileWatch::Open(loop_, place_.dir + "/" + kLeaseDir,
                              [this](std::string_view name, bool) { OnRecordChange(name); });
    if (!opened.ok()) return opened.error();
    records_ = std::move(opened).value();
  }
  if (processes_ == nullptr) {
    base::Result<std::unique_ptr<loop::FileWatch>> opened =
        loop::FileWatch::Open(loop_, place_.dir + "/" + kProcessDir,
                              [this](std::string_view name, bool closed_after_write) {
                                OnProcessFile(name, closed_after_write);
                              });
    if (!opened.ok()) return opened.error();
    processes_ = std::move(opened).value();
  }
  return {};
}

// Also for a lease that joins later: it hears kPushUp (the others once more, which changes nothing)
// and its record is looked at, for what changed before the watch was there.
void FileHints::Arm() {
  const base::Status opened = OpenWatches();
  if (opened.ok()) {
    if (told_down_) log_.Info("store.push_up", "changes of the store's directory are told again");
    told_down_ = false;
    TellAll(WatchEvent::Kind::kPushUp);
    const std::map<std::string, std::shared_ptr<Watched>> all = watched_;
    for (const auto& [lease, watched] : all) Peek(watched);
    return;
  }
  arm_->StartAfter(kArmAgain);
  if (told_down_) return;
  told_down_ = true;
  log_.Warn("store.push_down", "no push from the store's directory, standbys poll instead",
            {{"error", opened.error().message}});
  TellAll(WatchEvent::Kind::kPushDown);
}

// Later, since a watch that calls us must not be ended by it.
void FileHints::Reopen() {
  reopen_ = true;
  arm_->StartAfter(base::Duration::Zero());
}

// Without a name the directory itself went, or events were lost.
void FileHints::OnRecordChange(std::string_view file_name) {
  if (file_name.empty()) return Reopen();
  const std::map<std::string, std::shared_ptr<Watched>> all = watched_;
  for (const auto& [lease, watched] : all) {
    if (watched->file_name == file_name) Peek(watched);
  }
}

void FileHints::OnProcessFile(std::string_view file_name, bool closed_after_write) {
  if (file_name.empty()) return Reopen();
  if (!closed_after_write) return;
  const std::map<std::string, std::shared_ptr<Watched>> all = watched_;
  for (const auto& [lease, watched] : all) {
    const std::optional<Hands>& seen = watched->seen;
    if (!seen || seen->state == lease::RecordState::kReleased) continue;
    if (seen->process_id == place_.process_id) continue;
    if (EncodeFileName(seen->process_id) != file_name) continue;
    for (size_t i = 0; i < kAfterDeath.size(); ++i) {
      watched->after_death[i]->StartAfter(kAfterDeath[i]);
    }
    Tell(*watched, WatchEvent::Kind::kChangedHands);
  }
}

void FileHints::Peek(const std::shared_ptr<Watched>& watched) {
  if (watched->peeking) {
    watched->peek_again = true;
    return;
  }
  watched->peeking = true;
  watched->peek_again = false;
  using Peek = std::optional<base::Result<std::optional<lease::Record>>>;
  const auto found = std::make_shared<Peek>();
  // The worker may outlive this object and its place.
  loop_.Work([found, place = place_, lease = watched->lease] { *found = PeekRecord(place, lease); },
             [this, found, watched, alive = alive_] {
               if (!*alive) return;
               watched->peeking = false;
               const bool again = watched->peek_again;
               Peeked(*watched, **found);
               if (again && *alive) this->Peek(watched);
             });
}

void FileHints::Peeked(Watched& watched, const base::Result<std::optional<lease::Record>>& record) {
  if (!record.ok()) return Tell(watched, WatchEvent::Kind::kChangedHands);
  std::optional<Hands> now;
  if (record->has_value()) {
    const lease::Record& found = **record;
    now = Hands{found.process_id, found.token, found.state};
  }
  const bool same = now == watched.seen;
  watched.seen = now;
  if (!now && same) return;  // absent before and after: nothing to read
  Tell(watched, same ? WatchEvent::Kind::kBeat : WatchEvent::Kind::kChangedHands);
}

void FileHints::Tell(const Watched& watched, WatchEvent::Kind kind) {
  if (records_ == nullptr && kind != WatchEvent::Kind::kPushDown) return;
  const LeaseStore::WatchCallback hint = watched.hint;  // it may end this object
  hint(WatchEvent{kind});
}

void FileHints::TellAll(WatchEvent::Kind kind) {
  const std::map<std::string, std::shared_ptr<Watched>> all = watched_;
  for (const auto& [lease, watched] : all) {
    if (!*alive_) return;
    Tell(*watched, kind);
  }
}

}  // namespace leasehold::store
