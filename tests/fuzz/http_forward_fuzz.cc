// The http gate of a standby that forwards: the scene of http_gate_fuzz.cc, whose scripts play the
// holder's gate, what the record says of it, and the lease coming here meanwhile. Asserted after
// each step: gate_rules.h, of which this is about the last rule: before the holder has said that it
// admits, nothing goes that could be executed, and what may have been executed goes to nobody else.
// Its clock is the real one: pauses between two probes are milliseconds and pass while a script
// plays, the longer waits do not.
#include <string>

#include "fuzz/fuzz_target.h"
#include "fuzz/gate_scene.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  GateScene scene;
  scene.Play("@forward\n" + std::string(View(data, size)));
  return 0;
}
