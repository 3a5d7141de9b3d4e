#include "store/file_register.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "store/file_io.h"
#include "store/file_layout.h"
#include "store/record_json.h"

namespace leasehold::store {
namespace {

using base::ErrorCode;

// nullopt: somebody else has it.
base::Result<std::optional<Fd>> TryLockLease(int root, const LeaseFiles& files) {
  Fd fd = OpenAt(root, files.lock, O_RDWR | O_CREAT);
  if (!fd.valid()) return FileError("open the lock file " + files.lock, errno);
  int result = 0;
  do {
    result = flock(fd.get(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK) return std::optional<Fd>();
  if (result != 0) return FileError("lock " + files.lock, errno);
  // A stranger removed the lock file between open and lock: another process may lock a new one.
  if (!IsStillAt(fd.get(), root, files.lock)) return std::optional<Fd>();
  return std::optional<Fd>(std::move(fd));
}

CasResult Failed(const base::Error& error) {
  CasResult result;
  result.outcome = error.code == ErrorCode::kUnavailable ? CasResult::Outcome::kAmbiguous
                                                         : CasResult::Outcome::kRefused;
  result.error = error.message;
  return result;
}

CasResult Replace(int root, const FilePlace& place, const LeaseFiles& files,
                  const lease::Record& record, const std::string& text,
                  const std::atomic<bool>& cancelled) {
  const base::Status written = WriteTemp(root, files.temp, text, place.strict);
  if (!written.ok()) return Failed(written.error());
  CasResult result;
  if (cancelled.load(std::memory_order_acquire)) {
    unlinkat(root, files.temp.c_str(), 0);
    result.error = "the call's time was over before " + files.shown + " could be written";
    return result;
  }
  if (renameat(root, files.temp.c_str(), root, files.record.c_str()) != 0) {
    return Failed(FileError("rename " + files.temp + " to " + files.shown, errno));
  }
  // From here on it has happened; whether it lasts is not known if this fails.
  const base::Status durable = place.strict ? SyncLeaseDir(root) : base::Status();
  if (!durable.ok()) {
    result.error = durable.error().message;
    return result;
  }
  result.outcome = CasResult::Outcome::kApplied;
  result.version = lease::MakeVersion(record);
  return result;
}

// The answer if the record is not the expected one, or may not be touched at all.
std::optional<CasResult> Objection(const std::optional<lease::Record>& current,
                                   const std::optional<lease::Version>& expected) {
  CasResult result;
  result.outcome = CasResult::Outcome::kConflict;
  if (!current) {
    result.absent = true;
    return expected ? std::optional<CasResult>(std::move(result)) : std::nullopt;
  }
  // The version of a format that we do not know is not ours to compute, so it cannot be compared.
  if (current->format > lease::kRecordFormat) {
    return Failed(lease::ValidateRecord(*current).error());
  }
  result.version = lease::MakeVersion(*current);
  if (expected == result.version) return std::nullopt;
  result.record = current;
  return result;
}

// Our process file must be locked before our first write, and lie where others look for it.
// nullopt: all is well; otherwise the answer of this attempt.
std::optional<CasAttempt> EnsureProcessFile(int root, const FilePlace& place,
                                            const ProcessFile* held,
                                            std::optional<ProcessFile>& made) {
  if (held != nullptr && held->InPlace(root)) return std::nullopt;
  base::Result<ProcessFile> created = ProcessFile::Create(root, place.process_id, place.strict);
  if (created.ok()) {
    made = std::move(created).value();
    return std::nullopt;
  }
  CasAttempt attempt;
  // Most likely another call of this very store makes it at this moment.
  attempt.busy = created.error().code == ErrorCode::kConflict;
  attempt.result = Failed(created.error());
  return attempt;
}

CasAttempt Answered(CasResult result) {
  CasAttempt attempt;
  attempt.result = std::move(result);
  return attempt;
}

CasAttempt Busy(std::string why) {
  CasAttempt attempt;
  attempt.busy = true;
  attempt.result.error = std::move(why);
  return attempt;
}

// Under the lock: compare, and replace if it is the expected one.
CasAttempt CompareAndReplace(int root, const FilePlace& place, const LeaseFiles& files,
                             const CasRequest& request, const ProcessFile* process_file,
                             const std::atomic<bool>& cancelled) {
  const base::Result<std::optional<lease::Record>> current = LoadRecord(root, files, request.lease);
  if (!current.ok()) return Answered(Failed(current.error()));
  if (std::optional<CasResult> objection = Objection(*current, request.expected)) {
    return Answered(std::move(*objection));
  }
  if (request.record.lease != request.lease) {
    return Answered(Failed(
        {base::ErrorCode::kInvalid, "a record of lease '" + base::Printable(request.record.lease) +
                                        "' was offered for lease '" +
                                        base::Printable(request.lease) + "'; it must be its own"}));
  }
  const base::Result<std::string> text = RecordToJson(request.record);
  if (!text.ok()) return Answered(Failed(text.error()));
  std::optional<ProcessFile> made;
  if (std::optional<CasAttempt> failed = EnsureProcessFile(root, place, process_file, made)) {
    return std::move(*failed);
  }
  CasAttempt attempt = Answered(Replace(root, place, files, request.record, *text, cancelled));
  attempt.process_file = std::move(made);
  return attempt;
}

}  // namespace

ReadResult ReadRecord(const FilePlace& place, const std::string& lease) {
  ReadResult result;
  const auto fail = [&result](const base::Error& error) {
    result.outcome = error.code == ErrorCode::kUnavailable ? ReadResult::Outcome::kAmbiguous
                                                           : ReadResult::Outcome::kRefused;
    result.error = error.message;
    return result;
  };
  const base::Result<Fd> root = OpenRoot(place);
  if (!root.ok()) return fail(root.error());
  base::Result<std::optional<lease::Record>> record =
      LoadRecord(root->get(), LeaseFiles(place, lease), lease);
  if (!record.ok()) return fail(record.error());
  if (!record->has_value()) {
    result.outcome = ReadResult::Outcome::kAbsent;
    return result;
  }
  result.record = std::move(**record);
  const bool own = result.record.process_id == place.process_id;
  if (own && place.strict) {
    if (const base::Status durable = SyncLeaseDir(root->get()); !durable.ok()) {
      return fail(durable.error());
    }
  }
  result.outcome = ReadResult::Outcome::kRecord;
  result.version = lease::MakeVersion(result.record);
  result.holder_dead =
      !own && result.record.held() && IsProvenDead(root->get(), result.record.process_id);
  return result;
}

base::Result<std::optional<lease::Record>> PeekRecord(const FilePlace& place,
                                                      const std::string& lease) {
  const base::Result<Fd> root = OpenRoot(place);
  if (!root.ok()) return root.error();
  return LoadRecord(root->get(), LeaseFiles(place, lease), lease);
}

CasAttempt TryCompareAndSet(const FilePlace& place, const CasRequest& request,
                            const ProcessFile* process_file, const std::atomic<bool>& cancelled) {
  const LeaseFiles files(place, request.lease);
  const base::Result<Fd> root = OpenRoot(place);
  if (!root.ok()) return Answered(Failed(root.error()));
  const base::Result<std::optional<Fd>> lock = TryLockLease(root->get(), files);
  if (!lock.ok()) return Answered(Failed(lock.error()));
  if (!lock->has_value()) {
    return Busy("the lock " + place.dir + "/" + files.lock +
                " was held by another process and did not become free");
  }
  return CompareAndReplace(root->get(), place, files, request, process_file, cancelled);
}

}  // namespace leasehold::store
