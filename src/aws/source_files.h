// Small local files that hold credentials, tokens or settings: read whole, bounded, and without
// ever waiting for what is no file (a FIFO, a device, a directory). Blocking, so for the start and
// for worker threads. Invariant: no byte of a file is ever part of an error.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace leasehold::aws {

// kNotFound: there is nothing of that name. kRefused: it may not be read, or is no file (a
// character device is one: /dev/null stands for an empty file). kLimit: it is longer than
// `bytes_max`.
base::Result<std::string> ReadSmallFile(const std::string& path, size_t bytes_max);

// The one line of a token file: without the line break that an editor puts at its end. kInvalid if
// it is empty or has a line break or another control byte inside.
base::Result<std::string> ReadTokenFile(const std::string& path);

}  // namespace leasehold::aws
