// Trace: events and effects as one line of text each, for golden traces, the simulator and
// determinism checks. Two equal effects give equal text; the text shows every field that can change
// behaviour.
#pragma once

#include <string>

#include "lease/events.h"

namespace leasehold::lease {

std::string RecordText(const Record& record);  // "n1/p1 token=3 beat=7 held ttl=10000"
std::string EventText(const Event& event);
std::string EffectText(const Effect& effect);

}  // namespace leasehold::lease
