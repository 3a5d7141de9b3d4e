// RawSocketFixture: LoopFixture for tests whose other side is a RawSocket, which the loop knows
// nothing of: the condition is looked at every two milliseconds.
#pragma once

#include <functional>

#include "lib/loop_fixture.h"
#include "lib/raw_socket.h"

namespace leasehold::testing {

class RawSocketFixture : public LoopFixture {
 protected:
  // Runs the loop until `condition` holds. False: LoopFixture::kLimit passed first.
  bool Eventually(const std::function<bool()>& condition) {
    loop::Timer tick(loop_, [] {});
    return RunUntil([&] {
      if (condition()) {
        return true;
      }
      if (!tick.armed()) {
        tick.StartAfter(base::Duration::Millis(2));
      }
      return false;
    });
  }
};

}  // namespace leasehold::testing
