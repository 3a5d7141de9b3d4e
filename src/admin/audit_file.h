// AuditFile: the descriptor behind AuditSink, blocking calls only. Open() and Tail() are for the
// start; Write() runs on a worker thread, one at a time, and touches nothing else. Knows no loop.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admin/audit_sink.h"
#include "base/result.h"

namespace leasehold::admin {

class AuditFile {
 public:
  struct Written {
    size_t failed = 0;  // lines that are not, or not wholly, in the file
    std::string error;  // of the last of them
  };

  static base::Result<std::shared_ptr<AuditFile>> Open(const std::string& name);
  explicit AuditFile(std::string name) : name_(std::move(name)) {}
  ~AuditFile();
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;

  // Each line with its newline by one write. A line that fails does not stop the next.
  Written Write(const std::vector<std::string>& lines);
  // The end of a regular file, whole lines; empty for anything else.
  std::string Tail() const;
  const std::string& name() const { return name_; }

 private:
  int OpenPath();  // 0 or errno
  int ReopenIfMoved();
  int WriteLine(const std::string& line);

  const std::string name_;  // a path, or "stdout"
  int fd_ = -1;
  bool regular_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool torn_ = false;  // the last write took only part of its line
};

// The newest term per lease among entries that a process of `node_id` wrote. What is no entry is
// passed over.
std::map<std::string, AuditedTerm> LastTerms(const std::string& lines, std::string_view node_id);

}  // namespace leasehold::admin
