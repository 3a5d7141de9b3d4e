#include "app/state_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "store/file_layout.h"

namespace leasehold::app {
namespace {

using base::Error;
using base::ErrorCode;

constexpr const char* kLockFile = "lock";
constexpr const char* kNoteFile = "state.json";
constexpr const char* kTempFile = "state.json.new";
// A predecessor's predecessor is of use only when a restart crashed before it took the lease over;
// a few are plenty.
constexpr size_t kFormerMax = 8;
constexpr size_t kNoteBytesMax = 1024 * 1024;

std::string InDir(const std::string& dir, const char* name) { return dir + "/" + name; }

}  // namespace

StateDir::StateDir(loop::Loop& loop, observe::Log& log, std::shared_ptr<Place> place,
                   std::string process_id)
    : loop_(loop), log_(log), place_(std::move(place)), self_(std::make_shared<StateDir*>(this)) {
  note_.process_id = std::move(process_id);
}

base::Result<std::unique_ptr<StateDir>> StateDir::Open(loop::Loop& loop, const std::string& dir,
                                                       const std::string& process_id,
                                                       observe::Log& log) {
  const std::string what = "node.state_dir \"" + dir + "\"";
  if (mkdir(dir.c_str(), 0770) != 0 && errno != EEXIST)
    return store::FileError("create " + what, errno);
  auto place = std::make_shared<Place>();
  place->dir = dir;
  place->dir_fd = store::Fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!place->dir_fd.valid()) return store::FileError("open " + what, errno);
  if (base::Status local = store::RefuseNetworkFilesystem(place->dir_fd.get(), what); !local)
    return local.error();
  place->lock = store::OpenAt(place->dir_fd.get(), kLockFile, O_RDWR | O_CREAT);
  if (!place->lock.valid()) return store::FileError("open " + InDir(dir, kLockFile), errno);
  if (flock(place->lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return store::FileError("lock " + InDir(dir, kLockFile), errno);
    return Error{ErrorCode::kInvalid,
                 what +
                     " is in use by another living sidecar, or by the command of one that has just "
                     "died; give every sidecar its own"};
  }
  std::unique_ptr<StateDir> state(new StateDir(loop, log, std::move(place), process_id));
  if (base::Status loaded = state->Load(); !loaded) return loaded.error();
  if (base::Status noted = WriteNote(*state->place_, StateNoteText(state->note_)); !noted)
    return noted.error();
  return state;
}

base::Status StateDir::Load() {
  const std::string path = InDir(place_->dir, kNoteFile);
  store::Fd file = store::OpenAt(place_->dir_fd.get(), kNoteFile, O_RDONLY);
  if (!file.valid())
    return errno == ENOENT ? base::Status() : store::FileError("open " + path, errno);
  base::Result<std::string> text = store::ReadWhole(file.get(), kNoteBytesMax, path);
  if (!text) return text.error();
  base::Result<StateNote> noted = ParseStateNote(*text);
  if (!noted) {
    return Error{ErrorCode::kInvalid,
                 path + " is not a note of this program: " + noted.error().message +
                     "; it tells the highest fencing token seen, so repair it, or remove "
                     "it if losing that is acceptable"};
  }
  // Who wrote it is dead, and so are those it knew to be.
  note_.former = std::move(noted->former);
  note_.former.insert(note_.former.begin(), std::move(noted->process_id));
  if (note_.former.size() > kFormerMax) note_.former.resize(kFormerMax);
  note_.leases = std::move(noted->leases);
  return {};
}

base::Status StateDir::WriteNote(const Place& place, const std::string& text) {
  const std::string path = InDir(place.dir, kTempFile);
  store::Fd file = store::OpenAt(place.dir_fd.get(), kTempFile, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.valid()) return store::FileError("create " + path, errno);
  if (base::Status wrote = store::WriteWhole(file.get(), text, path); !wrote) return wrote;
  if (base::Status synced = store::Sync(file.get(), path); !synced) return synced;
  if (renameat(place.dir_fd.get(), kTempFile, place.dir_fd.get(), kNoteFile) != 0) {
    return store::FileError("rename " + path, errno);
  }
  return store::Sync(place.dir_fd.get(), place.dir);
}

bool StateDir::ProvenDead(std::string_view process_id) const {
  return std::find(note_.former.begin(), note_.former.end(), process_id) != note_.former.end();
}

lease::Memory StateDir::MemoryOf(const std::string& lease) const {
  const auto found = note_.leases.find(lease);
  return found == note_.leases.end() ? lease::Memory{} : found->second;
}

void StateDir::Remember(const std::string& lease, uint64_t token, base::Duration ttl) {
  // A record whose TTL is out of range is acted on by nobody: neither that nor its token is noted,
  // or a restart would wait for it, or not read the note at all.
  if (!IsRecordTtl(ttl)) return;
  lease::Memory& memory = note_.leases[lease];
  if (token <= memory.highest_token && ttl == memory.last_ttl) return;
  memory.highest_token = std::max(memory.highest_token, token);
  memory.last_ttl = ttl;
  dirty_ = true;
  WriteSoon();
}

void StateDir::WriteSoon() {
  if (writing_ || !std::exchange(dirty_, false)) return;
  writing_ = true;
  auto result = std::make_shared<base::Status>();
  loop_.Work(
      [place = place_, text = StateNoteText(note_), result] { *result = WriteNote(*place, text); },
      [self = std::weak_ptr<StateDir*>(self_), result] {
        const auto alive = self.lock();
        if (!alive) return;
        StateDir& state = **alive;
        state.writing_ = false;
        if (!*result) {
          state.log_.Warn("node.state_dir",
                          "the highest token seen could not be noted: " + result->error().message);
        }
        state.WriteSoon();
      });
}

}  // namespace leasehold::app
