// FileWatch: inotify on a directory: names that were created, moved in, written and closed, or
// deleted.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "loop/loop.h"

namespace leasehold::loop {

class FileWatch {
 public:
  // `closed_after_write` is true when a writer closed the file (also when its process died: the
  // kernel closes it).
  using Callback = std::function<void(std::string_view name, bool closed_after_write)>;
  static base::Result<std::unique_ptr<FileWatch>> Open(Loop& loop, const std::string& dir,
                                                       Callback on_change);
  virtual ~FileWatch() = default;
};

}  // namespace leasehold::loop
