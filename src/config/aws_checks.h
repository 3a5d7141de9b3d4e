// Checks of what sidecar.conf says of AWS: the dynamodb store's options and an sqs gate's. Pure: no
// file, no name, no network; what the environment adds to them is looked at when the program
// starts.
#pragma once

#include <cstddef>

#include "config/document.h"

namespace leasehold::config {

void CheckDynamoDb(Document& document);
// Also settles what an sqs gate always is: outbound.
void CheckSqsGate(Document& document, size_t gate_index);

}  // namespace leasehold::config
