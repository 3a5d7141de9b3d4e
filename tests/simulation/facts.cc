#include "simulation/facts.h"

#include <cinttypes>
#include <cstdio>

namespace leasehold::simulation {

PermitShot Shot(const lease::Permit& permit) {
  return {permit.valve(), permit.token(), permit.expiry()};
}

std::string Name(const Process& process) {
  return "n" + std::to_string(process.node) + "/" + process.identity.process_id;
}

std::string Seconds(TrueNs t) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", static_cast<double>(t) / 1e9);
  return text;
}

std::string Seconds(base::Duration d) { return Seconds(d.nanos()); }

std::string PermitText(const PermitShot& permit, const BootClock& clock) {
  static constexpr const char* kNames[] = {"closed", "holding", "open", "draining"};
  std::string text = kNames[static_cast<size_t>(permit.valve)];
  text += " token=" + std::to_string(permit.token);
  if (permit.valve != lease::Valve::kClosed) {
    text += " until " + Seconds(clock.TrueAt(permit.expiry));
  }
  return text;
}

}  // namespace leasehold::simulation
