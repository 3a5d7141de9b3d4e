// CheckCombinations: what is wrong or risky between options that are each right by themselves
// (DESIGN 2.6, 4, 5), and the values that follow from others: node id, a gate's lease,
// hold_timeout.
#pragma once

#include "config/document.h"

namespace leasehold::config {

void CheckCombinations(Document& document);

}  // namespace leasehold::config
