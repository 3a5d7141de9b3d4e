// The script of a gate's scene (gate_scene.h): lines that begin with '@' and a word are steps, what
// follows up to the next such line are the bytes of the step (without the line break before it).
//
//   @reject @forward @finish   first only: standby, instead of "hold"; on_loss = "finish"
//   @open @hold @drain @close @lost    the engine's words to the gate, with a permit to match
//   @expire                    the permit runs out, and nobody tells the gate
//   @c0..@c2, @p0..@p2  bytes  from a client, or from a sidecar at the peer listener, in one piece
//   @e0, @f0                   that one ends its sending half;  @q0, @r0: it resets
//   @ok                        the application answers what it has got whole
//   @a       bytes             the application's own bytes on its newest connection
//   @x, @k                     the application ends its newest connection, or resets it
//   @holder @successor @stepping @nobody   what the record says: a holder's gate, which the script
//                              plays; another process there; the first one, draining; none
//   @hok  @h bytes  @hx  @hk   that holder, as the application above; @hok also says admissions
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leasehold::fuzz {

struct ScriptStep {
  std::string_view word;
  std::string_view bytes;
};

// Views into `script`. What no step begins with is dropped. At most `steps_max`.
inline std::vector<ScriptStep> ParseScript(std::string_view script, size_t steps_max) {
  std::vector<ScriptStep> steps;
  size_t at = script.starts_with('@') ? 0 : script.find("\n@");
  while (at != std::string_view::npos && steps.size() < steps_max) {
    const size_t begin = script.find('@', at) + 1;
    const size_t next = script.find("\n@", begin);
    const std::string_view step = script.substr(
        begin, next == std::string_view::npos ? std::string_view::npos : next - begin);
    const size_t line = std::min(step.find('\n'), step.size());
    steps.push_back({step.substr(0, line), step.substr(std::min(line + 1, step.size()))});
    at = next;
  }
  return steps;
}

}  // namespace leasehold::fuzz
