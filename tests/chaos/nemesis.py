"""The nemesis: a plan of faults drawn from a seed, and the hand that carries it out. The plan (what,
to whom, when, how long, with which chances) is the same for the same seed; what the processes make of
it is not, since they are real. Storms, in which faults overlap, alternate with calms, in which
everything must be well again."""

import dataclasses
import heapq
import random
import threading
import time

from . import faults
from .records import told_of_a_loss
from .scene import HOLD_OFF, TTLS, UNREADY_AFTER, settle

# A storm is long enough for some takeovers inside it, and its faults overlap.
STORM = (4.0, 20.0)
SECONDS_PER_FAULT = (0.4, 2.5)
# What means nothing but to the holder.
HOLDERS = {"planned_move", "planned_move_asked_again", "planned_move_of_another", "app_unready"}
# How long each fault lasts: shorter than a renewal, around a TTL, much longer.
LASTS = ((0.05, 0.4), (0.4, 2.0), (1.0, 3.5), (3.0, 9.0))
# After the last fault of a storm: a cold takeover is 2 TTL (DESIGN 2.2: one to look, one if the record
# is not what it was), then the hold-off of one that has just released and an application's way back to
# ready; a connection that lost packets is noticed to be dead within 3.5 s (DESIGN 4). The last second
# is the machine's.
NOTICED_DEAD = 3.5
MACHINE = 1.0
OPERATOR = 20.0  # the longest that an operator tries
OPERATOR_LOOKS = 0.5
OPERATOR_IS_TOLD = 2 * max(TTLS)  # each that remembers has looked at the record by then
OPERATIONS = 3
QUIET = 2.0  # of the calm, what must be without any fault


def serves_within(longest_ttl):
    """Seconds from the end of all faults to the first request that is served."""
    return 2 * longest_ttl + HOLD_OFF + UNREADY_AFTER + MACHINE


def well_within(longest_ttl):
    """... until nothing at all goes wrong any more."""
    return serves_within(longest_ttl) + NOTICED_DEAD


@dataclasses.dataclass(frozen=True)
class Planned:
    at: float       # seconds from the storm's begin
    kind: str
    target: str
    lasts: float
    seed: int       # of the chances that the fault itself draws


def plan_storm(draw, kinds):
    """(length, [Planned])."""
    length = draw.uniform(*STORM)
    planned = []
    for _ in range(round(length / draw.uniform(*SECONDS_PER_FAULT))):
        kind = draw.choices(list(kinds), list(kinds.values()))[0]
        target = draw.choice(("holder", "holder", "holder", "standby", "any"))
        lasts = draw.uniform(*draw.choice(LASTS))
        at = draw.uniform(0, length * 0.9)
        planned.append(Planned(at, kind, "holder" if kind in HOLDERS else target,
                               min(lasts, length - at), draw.getrandbits(32)))
    return length, sorted(planned, key=lambda p: p.at)


class Nemesis:
    def __init__(self, scene, seed, say):
        self._scene = scene
        self._draw = random.Random(f"{seed} nemesis")
        self._say = say
        self.kinds = faults.kinds_for(scene)
        self._asking = []
        self._told_before = 0

    def storm(self, number, until):
        """One storm and the calm after it. False: there was no time for it before `until`."""
        length, planned = plan_storm(self._draw, self.kinds)
        calm = well_within(max(TTLS)) + QUIET
        if time.monotonic() + length + calm > until:
            return False
        journal = self._scene.journal
        self._told_before = self._tellings()
        journal.write("storm.begin", number=number)
        self._say(f"storm {number}, {length:.0f} s: " + " ".join(p.kind for p in planned))
        self._carry_out(planned)
        self._scene.heal()
        for each in self._asking:
            each.join(faults.STEP_DOWN_TIMEOUT + 1)
        self._asking.clear()
        self._calm(calm, number)
        journal.write("calm.end", number=number)
        for node in self._scene.nodes:
            node.note_exit()
        return True

    def _carry_out(self, planned):
        began = time.monotonic()
        heap = [(p.at, i, p, None) for i, p in enumerate(planned)]
        heapq.heapify(heap)
        while heap:
            at, i, one, undo = heapq.heappop(heap)
            self._wait(began + at)
            if undo is not None:
                undo()
                self._scene.journal.write("fault.end", kind=one.kind)
                continue
            undo = self._begin(one)
            if undo is not None:
                heapq.heappush(heap, (at + one.lasts, i, one, undo))

    @staticmethod
    def _wait(until):
        left = until - time.monotonic()
        if left > 0:
            settle(left)

    def _begin(self, one):
        chances = random.Random(one.seed)
        node = self._scene.pick(one.target, chances)
        self._scene.journal.write("fault", kind=one.kind, target=one.target, node=node.name,
                                  lasts=one.lasts)
        return getattr(faults, one.kind)(faults.Touch(self._scene, node, chances, self._ask))

    def _ask(self, what):
        """What takes long goes on by itself; nothing is started from there."""
        thread = threading.Thread(target=what, daemon=True)
        self._asking.append(thread)
        thread.start()

    def _calm(self, seconds, number):
        """A calm of its full length without an operator: the storm is over when he has done his work.
        (Where two stores give out tokens he never has.)"""
        for _ in range(OPERATIONS):
            self._operate()
            self._scene.journal.write("storm.end", number=number)
            over = time.monotonic() + seconds
            while not self._refused():
                if time.monotonic() >= over:
                    return
                settle(OPERATOR_LOOKS)

    def _refused(self):
        """(node, token, fence's token) of a holder whom the fence refuses; None if there is none."""
        # The fence only rises, so it is asked first: a takeover in between refuses nobody.
        token, process = self._scene.fence()
        holder = self._scene.holder()
        lease = holder.lease() if holder else None
        if not lease or not lease["holding"]:
            return None
        mine = int(lease["token"])
        well = mine > token or (mine == token and lease["holder"]["process_id"] == process)
        return None if well else (holder.name, mine, token)

    def _operate(self):
        """A store that lost writes, beside a sidecar that remembers nothing, gives out tokens again
        that every fence refuses. No sidecar can repair that, those who remember tell it
        (token_regression), and an operator can: by raising the record's token. He does so when he was
        told; untold in the end too, which the checker does not forgive."""
        began = time.monotonic()
        while (refused := self._refused()) and time.monotonic() < began + OPERATOR:
            if not self._told() and time.monotonic() < began + OPERATOR_IS_TOLD:
                settle(OPERATOR_LOOKS)
                continue
            node, token, highest = refused
            self._scene.journal.write("operator", node=node, token=token, highest=highest)
            self._scene.store.write_record("an operator raised the token", token=str(highest + 1))
            settle(max(TTLS))

    def _told(self):
        """Whether a sidecar told in this storm that the store had lost a write."""
        return self._tellings() > self._told_before

    def _tellings(self):
        return sum(told_of_a_loss(event) for node in self._scene.nodes
                   for event in node.sidecar.events(every_life=True))
