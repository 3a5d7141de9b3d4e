"""Mutants of what carries the engine's word out: the lease driver, the gate frame, the gate core (DESIGN 2.5, 4)."""

from mutations import rules as r
from mutations.mutant import Edit, Mutant

CORE = "src/gate/gate_core.cc"
DRIVER = "src/app/lease_driver.cc"
FRAME = "src/gate/gate_frame.cc"
SIM_GATE = "tests/simulation/sim_gate.cc"

DRIVER_MUTANTS = [
    Mutant(
        "effects are carried out last first",
        "effects are carried out in order: gates first, the release after",
        (Edit(DRIVER, "    for (const lease::Effect& effect : effects) {\n"
                      "      std::visit([this](const auto& e) { Carry(e); }, effect);\n",
              "    for (auto effect = effects.rbegin(); effect != effects.rend(); ++effect) {\n"
              "      std::visit([this](const auto& e) { Carry(e); }, *effect);\n"),),
        (r.CUT_BEFORE_RELEASE, r.SHUTS, r.ADMITTED_OPEN)),
    Mutant(
        "gates are told in the next turn of the loop",
        "every gate is shut before the first byte of a release is sent",
        (Edit(DRIVER, "  for (const auto& gate : gates_) {\n    if (base::Status set = gate->SetValve(change); !set) {\n",
              "  host_.loop.Post([this, alive = alive_, change] {\n"
              "    if (!*alive) return;\n"
              "    for (const auto& gate : gates_) (void)gate->SetValve(change);\n"
              "  });\n"
              "  for (const auto& gate : gates_) {\n    if (base::Status set = {}; !set) {\n"),),
        (r.CUT_BEFORE_RELEASE, r.ADMITTED_OPEN)),
    Mutant(
        "only the first gate is told to shut",
        "when grace is over, or the lease is lost, every gate is shut",
        (Edit(DRIVER, "    report_.TellGate(gate->options().name, effect);\n",
              "    report_.TellGate(gate->options().name, effect);\n"
              "    if (effect.valve == lease::Valve::kClosed) break;\n"),),
        (r.CUT_BEFORE_RELEASE, r.OVERTAKES, r.ANSWERED, r.DRAIN_WAITS, r.LOSES_NOTHING)),
    Mutant(
        "drained is said though a gate is busy",
        "the release waits until every gate is empty",
        (Edit(DRIVER, "    if (!gate->ends_last() && !gate->empty()) return;\n", "    (void)gate;\n"),
         Edit(DRIVER, "  for (const auto& gate : gates_) {\n    if (!gate->empty()) return;\n  }\n", "")),
        (r.DRAIN_WAITS,)),
    Mutant(
        "a deadline is booked once",
        "a wake-up is booked for whatever the engine wants next",
        (Edit(DRIVER, "  deadline_.StartAt(engine_.NextDeadline());\n",
              "  if (!deadline_.armed()) deadline_.StartAt(engine_.NextDeadline());\n"),),
        (r.SHUTS, r.FORCED_DRAIN, r.HOLDS_AGAIN, r.OUTAGE_INVISIBLE, r.TAKEN_IN_TIME, r.GRACE_OVER, r.DRAIN_FIRST,
         r.LOSS_AT_ONCE, r.ONE_PERMIT, r.STOPS, r.AMBIGUOUS_READ, r.LOST_TIME_RENEWS)),
    Mutant(
        "every process is taken for dead",
        "only a proven death lets a lease be taken at once",
        (Edit(DRIVER, "  if (host_.proven_dead(result.record.process_id)) result.holder_dead = true;\n",
              "  result.holder_dead = true;\n"),),
        (r.ONE_PERMIT,)),
]

GATE_MUTANTS = [
    Mutant(
        "a gate admits without a fresh look at the clock",
        "the permit is checked against a fresh clock reading at every admission",
        (Edit(CORE, "  if (!permit.MayAct(now)) {\n    saw_expired_ = true;\n    return Valve::kClosed;\n  }\n", "  (void)now;\n"),),
        (r.ADMITTED_OPEN, r.TOKENS_RISE)),
    Mutant(
        "an answer passes after expiry",
        "the permit is checked at every forwarded chunk",
        (Edit(CORE, "  return finish_on_loss_;\n", "  return true;\n"),),
        (r.PASSES,)),
    Mutant(
        "a gate is empty while work is in flight",
        "the release waits until every gate is empty",
        (Edit(CORE, "return valve_ == Valve::kDraining && (in_flight_ == 0 || !waiting_for_tunnels_);",
              "return valve_ == Valve::kDraining;"),),
        (r.DRAIN_WAITS,)),
    Mutant(
        "a ticket is never given back",
        "in flight: admitted and not yet finished; a drain ends when nothing is",
        (Edit("src/gate/admission.cc", "    core->Finished();\n", "    (void)core;\n"),),
        (r.TICKETS,)),
    Mutant(
        "a draining gate admits what another sidecar sends",
        "stop what brings work in: inbound gates stop admitting",
        (Edit(CORE, "  if (effective != Valve::kOpen) return RefuseWhile(effective);\n",
              "  if (effective == Valve::kClosed) return RefuseWhile(effective);\n"),),
        (r.ADMITTED_OPEN, r.DRAIN_WAITS)),
    Mutant(
        "a draining gate admits",
        "stop what brings work in: inbound gates stop admitting",
        (Edit(CORE, "return effective == Valve::kOpen || (outbound_ && effective == Valve::kDraining);",
              "return effective == Valve::kOpen || effective == Valve::kDraining;"),),
        (r.ADMITTED_OPEN,)),
    Mutant(
        "who waits is let in one at a time",
        "what was held is served when the gate opens, before anybody new",
        (Edit(FRAME, "    Serve(*entry, std::move(ticket));\n  }\n", "    return Serve(*entry, std::move(ticket));\n  }\n"),),
        (r.OVERTAKES,)),
    Mutant(
        "who waits is not served when the gate opens",
        "what was held is served when the gate opens, before anybody new",
        (Edit(FRAME, "  ServeHeld();\n  ForwardHeld();\n  RefuseHeld();\n", "  ForwardHeld();\n  RefuseHeld();\n"),),
        (r.OVERTAKES,)),
    Mutant(
        "who waits is never refused",
        "hold: a bounded queue, then 503 after hold_timeout",
        (Edit(CORE, "  if (entry->hold_deadline() <= now) {\n", "  if (false) {\n"),),
        (r.ANSWERED, r.AT_REST)),
    Mutant(
        "a draining gate refuses what it could hold",
        "a draining http gate holds new requests, bounded, instead of refusing them",
        (Edit(CORE, "(hold_policy_ && !AdmitsWhile(effective));", "(hold_policy_ && effective == Valve::kClosed);"),),
        (r.LOSES_NOTHING,)),
    Mutant(
        "what is held after a release is refused",
        "after the release it sends them to the new holder, or serves them itself if it takes the lease back",
        (Edit(CORE, "(hold_policy_ && !AdmitsWhile(effective));", "(hold_policy_ && effective == Valve::kDraining);"),),
        (r.LOSES_NOTHING,)),
    Mutant(
        "a request that is not idempotent is sent again after it was admitted",
        "a request that is not idempotent is never sent twice",
        (Edit(SIM_GATE, "  if (admission_lost && exchange.request->post) return End(exchange, Said::kShut);\n", ""),),
        (r.ONCE,)),
    Mutant(
        "a held request that is served is refused as well",
        "every request is answered once",
        (Edit(SIM_GATE, "  Admitted(exchange);\n  ToApplication(exchange);\n}\n\nvoid SimGate::Refuse",
              "  Admitted(exchange);\n  ToApplication(exchange);\n"
              "  world_.traffic().Answer(*exchange.request, Said::kRefused);\n}\n\nvoid SimGate::Refuse"),),
        (r.ANSWERED, r.REFUSED_NOT_DONE)),
]

MUTANTS = DRIVER_MUTANTS + GATE_MUTANTS
