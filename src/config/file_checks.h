// CheckFiles: what this machine's files say of the options that name them: secrets, the hooks'
// programs, the audit's file. It only looks. What is missing here may be there where the sidecar
// runs, so most of it is a warning; `run` refuses what is then still wrong.
#pragma once

#include "config/document.h"

namespace leasehold::config {

void CheckFiles(Document& document);

}  // namespace leasehold::config
