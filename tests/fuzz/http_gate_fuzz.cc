// The whole http gate on real sockets, played a script: bytes of clients, of other sidecars at the
// peer listener, and of the application, with the engine's words and an expiring permit between
// them (gate_scene.h, gate_script.h). Asserted after each step: gate_rules.h; and at the end, when
// everybody has left, that the gate holds no connection, no request and no count of one. All of it
// is at most some KiB in 32 steps, on three clients and three sidecars at a time.
#include "fuzz/fuzz_target.h"
#include "fuzz/gate_scene.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  GateScene scene;
  scene.Play(View(data, size));
  return 0;
}
