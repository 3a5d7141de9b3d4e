"""The faults, one function each. It begins the fault and returns what ends it (None: it has no end).
All chances come from touch.chances, so that a plan is the same each time. Whatever a fault leaves
behind, Scene.heal() puts right."""

import dataclasses
import random
import signal
import typing

from .scene import FORGED, LEASE, TTLS, settle

STEP_DOWN_TIMEOUT = 8.0
# Steps of the wall clock, in seconds: longer than any run and all unlike each other, so that a log
# line's time tells under which it was written.
DAY = 86400
CLOCK_STEPS = (-400 * DAY, -30 * DAY, -2 * DAY, 2 * DAY, 30 * DAY, 400 * DAY)


@dataclasses.dataclass
class Touch:
    scene: typing.Any
    node: typing.Any
    chances: random.Random
    ask: typing.Callable

    @property
    def store(self):
        return self.scene.store


# ---- sidecars ----

def sidecar_killed(touch):
    touch.node.kill()
    return touch.node.start


def sidecar_killed_and_forgets(touch):
    """Its state_dir is gone: a pod on another host."""
    touch.node.kill()
    return lambda: touch.node.start(forget=True)


def sidecar_killed_and_reconfigured(touch):
    """Back with another TTL than the record of its own former life has."""
    touch.node.kill()

    def undo():
        touch.node.set_ttl(touch.chances.choice(TTLS))
        touch.node.start()
    return undo


def sidecar_killed_and_back_at_once(touch):
    touch.node.kill()
    touch.node.note_exit()
    touch.node.start()


def sidecar_told_to_end(touch):
    touch.node.kill(signal.SIGTERM)
    return touch.node.start


def sidecar_told_twice(touch):
    """The second SIGTERM: at once."""
    touch.node.kill(signal.SIGTERM)

    def undo():
        touch.node.kill(signal.SIGTERM)
        settle(0.05)
        touch.node.start()
    return undo


def sidecar_stopped(touch):
    touch.node.freeze()
    return touch.node.cont


def sidecar_stopped_in_a_burst(touch):
    """In the middle of work: between a look at the permit and the write that follows, if ever."""
    touch.scene.clients.burst(touch.node, touch.chances)
    settle(touch.chances.uniform(0, 0.004))
    touch.node.freeze()
    return touch.node.cont


def sidecar_stutters(touch):
    """Stopped and going on many times: most of its instructions run right after a pause."""
    def stutter():
        for _ in range(touch.chances.randint(5, 20)):
            touch.node.freeze()
            settle(touch.chances.uniform(0.005, 0.15))
            touch.node.cont()
            settle(touch.chances.uniform(0.001, 0.1))
    stutter()


def stopped_when_it_acquires(touch):
    """The next holder stops in the moment in which the store has granted it the lease."""
    touch.scene.store_log.ambush = True
    touch.chances.choice((sidecar_killed_and_back_at_once, planned_move))(touch)

    def undo():
        touch.scene.store_log.ambush = False
        for node in touch.scene.nodes:
            node.cont()
    return undo


def all_stopped(touch):
    """A host that is starved: all three at once, going on one after the other."""
    for node in touch.scene.nodes:
        node.freeze()

    def undo():
        for node in touch.chances.sample(touch.scene.nodes, len(touch.scene.nodes)):
            node.cont()
    return undo


def stopped_and_cut(touch):
    """The worst for a permit: what is sent at the thaw finds the store only later."""
    undo_stop = sidecar_stopped(touch)
    road = touch.chances.choice(touch.scene.roads.faults) if touch.scene.roads.faults else None
    undo_road = getattr(touch.scene.roads, road)(touch.node.name, touch.chances) if road else None

    def undo():
        undo_stop()
        settle(touch.chances.uniform(0, 0.5))
        if undo_road is not None:
            undo_road()
    return undo


# ---- applications ----

def app_killed(touch):
    touch.node.app.kill()
    return touch.node.app.start


def app_stopped(touch):
    touch.node.app.freeze()
    return touch.node.app.cont


def app_unready(touch):
    touch.node.app.set_unready(True)
    return lambda: touch.node.app.set_unready(False)


def pod_killed(touch):
    touch.node.kill()
    touch.node.app.kill()

    def undo():
        touch.node.start()
        touch.node.app.start()
    return undo


# ---- roads ----

def road(touch):
    kind = touch.chances.choice(touch.scene.roads.faults)
    touch.scene.journal.write("road", node=touch.node.name, kind=kind)
    return getattr(touch.scene.roads, kind)(touch.node.name, touch.chances)


def road_flaps(touch):
    kind = touch.chances.choice(touch.scene.roads.faults)
    touch.scene.journal.write("road", node=touch.node.name, kind=kind + " flapping")
    for _ in range(touch.chances.randint(2, 6)):
        undo = getattr(touch.scene.roads, kind)(touch.node.name, touch.chances)
        settle(touch.chances.uniform(0.02, 0.5))
        undo()
        settle(touch.chances.uniform(0.01, 0.3))


def all_roads(touch):
    """The same to every node: the store is gone for all, or each is alone."""
    kind = touch.chances.choice(touch.scene.roads.faults)
    touch.scene.journal.write("road", node="all", kind=kind)
    undos = [getattr(touch.scene.roads, kind)(n.name, touch.chances) for n in touch.scene.nodes]
    return lambda: [undo() for undo in undos]


# ---- the store ----

def store_stopped(touch):
    touch.store.freeze()
    return touch.store.cont


def store_killed(touch):
    """What it acknowledged it still has."""
    touch.store.kill()
    return touch.store.start


def store_killed_and_forgets_all(touch):
    touch.store.kill()

    def undo():
        if not touch.store.process.running():
            touch.store.lose("all")
            touch.store.start()
    return undo


def store_killed_and_goes_back(touch):
    """A replica that lagged is promoted: the writes since the copy are lost."""
    if touch.store.stopped or not touch.store.process.running():
        return None
    touch.store.copy()

    def undo():
        touch.store.cont()
        touch.store.kill()
        touch.store.lose("back")
        touch.store.start()
    return undo


def store_full(touch):
    touch.store.command("CONFIG", "SET", "maxmemory", "1")
    return lambda: touch.store.command("CONFIG", "SET", "maxmemory", "0")


def store_flushed(touch):
    touch.store.command("FLUSHALL", loses="FLUSHALL")


def store_flushed_and_a_node_forgets(touch):
    """The worst a store can do: nobody who comes fresh can know of the holder."""
    touch.store.command("FLUSHALL", loses="FLUSHALL")
    forgetful = touch.scene.nodes[-1]
    forgetful.kill()
    forgetful.note_exit()
    forgetful.start()


def store_pauses_clients(touch):
    """It takes commands in and answers late, all at once."""
    touch.store.command("CLIENT", "PAUSE", str(touch.chances.randint(100, 2500)), "ALL")


def store_drops_clients(touch):
    touch.store.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    touch.store.command("CLIENT", "KILL", "TYPE", "pubsub")


def store_scripts_gone(touch):
    touch.store.command("SCRIPT", "FLUSH")


def store_seized(touch):
    return touch.store.seize()


# ---- the record ----

def record_deleted(touch):
    touch.store.delete_record()


def record_seized(touch):
    """Another holder's hand, one that never beats again."""
    token = int(touch.store.record().get("token", 0) or 0) + touch.chances.choice((1, 5, 1000))
    touch.store.write_record("record overwritten", token=str(token), process_id=FORGED,
                             node_id="forged", beat="1", state="held")


def record_goes_back(touch):
    """An older record in the place of the present one."""
    before = touch.store.record()

    def undo():
        if before:
            touch.store.write_record("older record", **before)
    return undo


# ---- clocks, people ----

def clock_steps(touch):
    touch.node.step_clock(touch.chances.choice(CLOCK_STEPS))
    return lambda: touch.node.step_clock(0) if touch.chances.random() < 0.5 else None


def _step_down(touch, expected_node, expected_token, right, take_back):
    """Asks the node; what was asked and answered is in the journal."""
    asked = touch.scene.journal.write("step_down.asked", node=touch.node.name, right=right,
                                      expected_node=expected_node, expected_token=expected_token)
    answer = touch.node.ask(timeout=STEP_DOWN_TIMEOUT, op="step_down", lease=LEASE,
                            expected_node_id=expected_node, expected_token=str(expected_token),
                            take_back=take_back)
    touch.scene.journal.write("step_down.answered", node=touch.node.name, asked=asked, right=right,
                              expected_node=expected_node, expected_token=expected_token,
                              ok=None if answer is None else answer.get("ok"),
                              outcome=None if answer is None else
                              answer.get("outcome") or answer.get("error"))


def planned_move(touch):
    lease = touch.node.lease()
    if not lease or not lease["holding"]:
        return
    token, take_back = int(lease["token"]), touch.chances.random() < 0.5
    touch.ask(lambda: _step_down(touch, touch.node.name, token, True, take_back))


def planned_move_asked_again(touch):
    """The answer was slow, so it is asked again, and again later: never may the next holder go."""
    lease = touch.node.lease()
    if not lease or not lease["holding"]:
        return
    token = int(lease["token"])
    pauses = [touch.chances.uniform(0, 0.3), touch.chances.uniform(0.5, 2.5)]

    def again():
        _step_down(touch, touch.node.name, token, True, True)
        for pause in pauses:
            settle(pause)
            _step_down(touch, touch.node.name, token, True, True)
    touch.ask(again)


def planned_move_of_another(touch):
    """With the values of a term that is over, or of another node: nothing may change."""
    lease = touch.node.lease()
    if not lease or not lease["holding"]:
        return
    token = int(lease["token"])
    wrong = touch.chances.choice(((touch.node.name, token - 1), (touch.node.name, token + 1),
                                  ("s9", token)))
    touch.ask(lambda: _step_down(touch, *wrong, False, True))


EVERYWHERE = {
    sidecar_killed: 6, sidecar_killed_and_forgets: 2, sidecar_killed_and_back_at_once: 3,
    sidecar_killed_and_reconfigured: 2,
    sidecar_told_to_end: 4, sidecar_told_twice: 2, sidecar_stopped: 6, sidecar_stopped_in_a_burst: 6,
    sidecar_stutters: 3,
    all_stopped: 2, stopped_and_cut: 4, app_killed: 3, app_stopped: 4, app_unready: 3, pod_killed: 2,
    clock_steps: 3, planned_move: 6, planned_move_asked_again: 3, planned_move_of_another: 2,
    record_deleted: 1, record_seized: 2, record_goes_back: 2,
}
ON_ROADS = {road: 12, road_flaps: 3, all_roads: 4}
OF_REDIS = {
    store_stopped: 5, store_killed: 3, store_killed_and_forgets_all: 1,
    store_killed_and_goes_back: 2, store_full: 2, store_flushed: 1,
    store_flushed_and_a_node_forgets: 1, store_pauses_clients: 3, store_drops_clients: 3,
    store_scripts_gone: 1, stopped_when_it_acquires: 5,
}
OF_FILES = {store_seized: 6}


def kinds_for(scene):
    """{name: weight} of what can be done to this scene."""
    chosen = {**EVERYWHERE, **(ON_ROADS if scene.roads.faults else {}),
              **(OF_REDIS if scene.store.kind == "redis" else OF_FILES)}
    return {fault.__name__: weight for fault, weight in chosen.items()}
