// AuditSink: where the audit's lines go ([audit] file): a file, appended to, or standard output. It
// writes on a worker thread, one write per line, so that a full disk costs lines and a hung one (a
// dead NFS server) not even the loop's time. What does not fit the bounded queue, or could not be
// written, is counted and said in the log, never tried again. A file that was moved or removed (log
// rotation) is noticed before the next line and opened anew: no signal is needed. Owned by
// AuditLog. Invariant: lines are whole and in order; one that a full disk tore is ended before the
// next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::admin {

// The newest term of a lease in the file, from a process of this node that ran before.
struct AuditedTerm {
  uint64_t token = 0;
  std::string process_id;
};

class AuditSink {
 public:
  // `file`: "stdout" or a path, opened (and made) now; an error names it and what would be right.
  // `node_id`: whose entries in the file are remembered.
  static base::Result<std::unique_ptr<AuditSink>> Open(loop::Loop& loop, const std::string& file,
                                                       std::string_view node_id,
                                                       observe::Metrics& metrics,
                                                       observe::Log& log);
  virtual ~AuditSink() = default;
  virtual void Write(std::string line) = 0;  // without its newline
  // By lease, from the end of the file as it was at the start.
  virtual const std::map<std::string, AuditedTerm>& remembered() const = 0;
  // Calls back once, from the loop, when every line is written or `limit` has passed. Nothing is
  // written afterwards.
  virtual void Close(base::Duration limit, std::function<void()> done) = 0;
};

}  // namespace leasehold::admin
