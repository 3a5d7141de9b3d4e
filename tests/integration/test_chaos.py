"""Two minutes of `make chaos` (tests/chaos), and that its checker can fail: doctored records of a run,
each with one fault of its own, and two sidecars that a real mistake let hold at the same time."""

import contextlib
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys

import pytest

from harness.measured import measured
from harness.wait import wait_for

CHAOS = pathlib.Path(__file__).resolve().parents[1] / "chaos" / "chaos.py"
sys.path.insert(0, str(CHAOS.parents[1]))

from chaos.checker import check  # noqa: E402
from chaos.clients import HOLD_IDS, LINE_IDS  # noqa: E402
from chaos.nemesis import plan_storm  # noqa: E402
from chaos.records import SECOND  # noqa: E402
from moves.scene import SLOW_IDS  # noqa: E402

MINUTES = 2
# One plan of faults from commit to commit, so that a failure is the commit's; `make chaos` draws a
# new one each time.
SEED = os.environ.get("CHAOS_SEED", "51")
# Nothing of a run takes longer: its last storm's calm, what is still under way, the checker.
ENDS_WITHIN = MINUTES * 60 + 90


@pytest.fixture
def chaos(tmp_path):
    """chaos("--minutes", 2) -> (exit code, all that it said); its records are the test's own."""
    def run(*arguments, seconds=ENDS_WITHIN):
        done = subprocess.run([sys.executable, CHAOS, *map(str, arguments)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=dict(os.environ, TMPDIR=str(tmp_path)), timeout=seconds,
                              check=False)
        return done.returncode, done.stdout + done.stderr
    return run


def test_two_minutes_of_chaos_break_no_rule(chaos):
    code, said = chaos("--minutes", MINUTES, "--seed", SEED)
    for line in said.splitlines():
        if line.startswith("chaos ") or "takeovers" in line or "faults  " in line:
            measured(line.strip())
    assert code == 0, said


def test_two_sidecars_with_a_store_each_are_caught_serving_at_the_same_time(chaos):
    code, said = chaos("--minutes", 0.5, "--split-brain", "--seed", 1)
    assert code == 1 and "VIOLATION" in said, said
    assert "OVERLAP" in said and "terms overlap in the sidecars' logs" in said, said
    assert "served without a grant of the store's" in said, said


def test_the_same_seed_plans_the_same_faults():
    kinds = {"sidecar_killed": 3, "road": 2, "planned_move": 1}
    plans = [plan_storm(random.Random("7 nemesis"), kinds) for _ in range(2)]
    assert plans[0] == plans[1] and plans[0][1]
    assert plans[0] != plan_storm(random.Random("8 nemesis"), kinds)


def test_nothing_is_left_running_when_it_is_interrupted(tmp_path):
    def ours():
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if str(tmp_path).encode() in path.read_bytes():
                    found.append(path.parent.name)
        return found

    with open(tmp_path / "said", "wb") as said:
        run = subprocess.Popen([sys.executable, CHAOS, "--minutes", "2"], stdin=subprocess.DEVNULL,
                               stdout=said, stderr=said, env=dict(os.environ, TMPDIR=str(tmp_path)))
    wait_for(lambda: b"storm 1" in (tmp_path / "said").read_bytes(), 60, "the first storm")
    assert len(ours()) >= 7  # three sidecars, three applications, a store
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 130
    wait_for(lambda: not ours(), 5, lambda: f"still there: {ours()}")


# ---- doctored records ----

BASE = 1000 * SECOND
A, B = "a" * 32, "b" * 32


class Records:
    """A run of two nodes as the programs would have written it, all well: s1 serves under token 1, is
    killed, s2 under token 2. Cases change it before write()."""

    def __init__(self, directory):
        self.directory = directory
        self.journal = [{"at": BASE, "what": "scene", "store": "redis", "roads": "doctored",
                         "seed": "0", "split": False, "wall_to_boot": 0, "raw_standby": "forward", "rss_growth_max": 12 << 20,
                         "nodes": {"s1": {"app": "a", "ttl": 1.0, "remembers": True},
                                   "s2": {"app": "b", "ttl": 1.0, "remembers": True}}}]
        self.logs = {"s1": [], "s2": []}
        self.grants = [{"at": BASE, "what": "listening"}]
        self.executed, self.web, self.hold, self.clients = [], [], [], []
        self._sequences = itertools.count(1)
        for name in ("s1", "s2"):
            self.note(0, "sidecar.started", node=name)
        self.acquire("s1", 1, A, 0.1)
        for i in range(40):
            self.grant(0.1 + i / 10, 1, A)
            self.serve(0.11 + i / 10, "a", 1, A)
        self.note(4.1, "storm.begin", number=1)
        self.note(4.15, "sidecar.killed", node="s1", since=BASE + round(4.15 * SECOND))
        self.acquire("s2", 2, B, 5.2)
        self.note(6, "storm.end", number=1)
        for i in range(150):
            self.grant(5.2 + i / 10, 2, B)
            self.serve(5.3 + i / 10, "b", 2, B)
        self.line(7, "b")
        self.note(20, "calm.end", number=1)
        self.note(20.5, "end")

    @staticmethod
    def ns(at):
        return BASE + round(at * SECOND)

    def note(self, at, what, **fields):
        self.journal.append({"at": self.ns(at), "what": what, **fields})

    def log(self, node, at, event, **fields):
        ms = self.ns(at) // 1_000_000
        stamp = f"1970-01-01T00:{ms // 60000 % 60:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}Z"
        self.logs[node].append(f"ts={stamp} level=info event={event} "
                               + " ".join(f"{k}={v}" for k, v in fields.items()))

    def acquire(self, node, token, process, at):
        self.log(node, at, "lease.acquired", lease="orders", token=token, holder=node,
                 process=process)

    def grant(self, at, token, process, state="held"):
        self.grants.append({"at": self.ns(at), "what": "granted", "token": token,
                            "process": process, "state": state, "ttl": SECOND})

    def execute(self, at, app, token, process, number, what="BE"):
        sequence = next(self._sequences)
        for letter in what:
            self.executed.append((letter, self.ns(at), app, number, token, sequence, process,
                                  self.ns(at)))

    def asked(self, at, result="ok", app="a", token=1, took=0.01):
        number = SLOW_IDS + len(self.web)
        self.web.append((number, "POST/0", 0, self.ns(at), self.ns(at), self.ns(at + took), result,
                         app, token, 0))
        return number

    def serve(self, at, app, token, process, what="BE"):
        self.execute(at, app, token, process, self.asked(at, app=app, token=token), what)

    def line(self, at, app, executed=True):
        number = LINE_IDS + len(self.clients)
        self.clients.append({"at": self.ns(at), "what": "client", "kind": "line", "id": number,
                             "gate": "s2", "sent": self.ns(at), "done": self.ns(at + 0.01),
                             "result": "ok", "app": app})
        if executed:
            self.executed.append(("T", self.ns(at), app, number, 0, 0, "-", self.ns(at)))

    def check(self):
        """The faults that the checker finds, as one text."""
        def lines(name, rows):
            (self.directory / name).write_text("".join(f"{row}\n" for row in rows))

        lines("journal.jsonl", map(json.dumps, self.journal))
        lines("store.jsonl", map(json.dumps, self.grants))
        lines("clients.jsonl", map(json.dumps, self.clients))
        words = lambda rows: [" ".join(map(str, row)) for row in rows]  # noqa: E731
        lines("executed.log", words(sorted(self.executed, key=lambda row: row[1])))
        lines(f"load-{SLOW_IDS}.txt", words(self.web))
        lines(f"load-{HOLD_IDS}.txt", words(self.hold))
        for name, log in self.logs.items():
            (self.directory / name).mkdir()
            lines(f"{name}/sidecar.log", log)
        return "\n".join(check(self.directory).faults)


def overlap(r):
    """s1 was not dead after all."""
    r.serve(5.6, "a", 1, A)


def former_holder_of_the_same_token(r):
    r.acquire("s1", 2, A, 5.1)
    r.serve(5.6, "a", 2, A)


def repeated_token(r):
    r.acquire("s2", 2, "c" * 32, 18)


def lower_token(r):
    r.acquire("s2", 1, "c" * 32, 18)


def token_twice_after_one_loss(r):
    """Two in turn take token 1 after one FLUSHALL: the first is excused, the second was no loss's."""
    lost_write(r)
    r.acquire("s2", 1, "d" * 32, 19.8)
    r.grant(19.8, 1, "d" * 32)


def token_twice_after_a_loss_that_took_long(r):
    """The store, paused, carried out its FLUSHALL late; both came after it."""
    token_twice_after_one_loss(r)
    r.note(19.3, "store.loss_over", node="store")


def token_twice_by_the_logs_alone(r):
    """The file store has no log of its own."""
    token_twice_after_one_loss(r)
    r.journal[0]["store"], r.grants = "file", []


def overlap_after_a_loss(r):
    """Two that could not know, and serve at the same time: the loss was before both."""
    lost_write(r)
    r.acquire("s2", 2, "d" * 32, 19.7)
    r.grant(19.7, 2, "d" * 32)
    r.execute(19.75, "b", 2, "d" * 32, r.asked(19.75, "status_409", "-", 0), "BF")
    r.execute(19.8, "a", 1, "c" * 32, r.asked(19.8, "status_409", "-", 0), "BF")


def lower_token_than_it_held(r):
    """The store lost its writes, and the process that holds token 2 takes 1."""
    lost_write(r)
    r.log("s2", 19.1, "gate.closed", gate="web", token=2, reason="absent")
    r.log("s2", 19.1, "lease.lost", token=2, reason="absent")
    r.acquire("s2", 1, B, 19.3)


def lower_token_than_it_saw(r):
    lost_write(r)
    r.logs["s1"].pop()
    r.log("s1", 17.5, "sidecar.starting", process="c" * 32)
    r.log("s1", 18, "lease.observed", lease="orders", token=2, holder="s2", process=B)
    r.acquire("s1", 1, "c" * 32, 19.5)


def finished_seconds_later(r):
    """A request in one piece, by a gate with on_loss = "finish", long after its term."""
    lost_and_finished(r, "POST/0", 5.6)


def repair(r, at=19.55):
    r.note(at, "operator", node="s1", token=1, highest=2)
    r.note(at, "store.lost", node="store", how="an operator raised the token")
    r.journal.sort(key=lambda line: line["at"])


def repair_without_a_loss(r):
    r.acquire("s1", 1, "c" * 32, 19.5)
    r.log("s2", 19.52, "lease.token_regression", lease="orders", token=1)
    repair(r)


def repair_of_which_nobody_told(r):
    lost_write(r)
    repair(r)


def repair_of_a_rightful_holder(r):
    r.note(17, "store.lost", node="store", how="FLUSHALL")
    r.log("s2", 19.52, "lease.token_regression", lease="orders", token=1)
    repair(r)


def store_log_empty(r):
    r.grants = [{"at": BASE, "what": "deaf"}]


def store_log_deaf(r):
    """It heard one grant, and then nothing until the end."""
    r.grants = [*r.grants[:2], {"at": r.ns(0.2), "what": "deaf"},
                {"at": r.ns(20.4), "what": "listening"}]


def cut_short(r):
    r.journal.pop()


def without_the_record_of_requests(r):
    r.web = []


def acknowledged_and_lost(r):
    r.asked(18, app="b", token=2)


def acknowledged_by_another(r):
    r.execute(18, "b", 2, B, r.asked(18, app="a", token=2))


def post_executed_twice(r):
    r.execute(18, "b", 2, B, SLOW_IDS + 100, "BE")


def post_sent_twice(r):
    r.execute(18, "b", 2, B, SLOW_IDS + 100, "B")


def nothing_done_but_done(r):
    r.execute(3, "a", 1, A, r.asked(3, result="status_503/hold_timeout"))  # a POST


def wrong_body(r):
    r.serve(18, "b", 2, B, "BW")


def wrong_answer(r):
    r.execute(18, "b", 2, B, r.asked(18, "wrong_answer", "b", 2))


def through_the_fence(r):
    r.execute(6.5, "a", 1, A, SLOW_IDS + 900_000, "E")


def admitted_after_the_term(r):
    """By a gate with on_loss = "finish": it may finish, and take in nothing."""
    r.hold.append((HOLD_IDS, "POST/0", 0, r.ns(5.5), r.ns(5.5), r.ns(5.6), "status_409", "-", 0, 0))
    r.execute(5.6, "a", 1, A, HOLD_IDS, "BF")


def outside_its_term(r):
    r.serve(4.9, "b", 2, B)


def token_that_was_never_acquired(r):
    r.serve(19.9, "b", 9, B)


def beyond_the_grant(r):
    r.grants = [g for g in r.grants if g["at"] < r.ns(12)]


def served_after_the_release(r):
    r.grant(15, 2, B, "released")
    r.grants = [g for g in r.grants if g["at"] <= r.ns(15)]


def two_terms_in_the_logs(r):
    r.acquire("s1", 3, "c" * 32, 19)


def long_gap(r):
    gone = {row[0] for row in r.web if r.ns(5.3) <= row[3] < r.ns(15)}
    r.web = [(*row[:5], row[3] + 1, "status_503/not_holding", "-", 0, 0) if row[0] in gone else row
             for row in r.web]
    r.executed = [row for row in r.executed if row[3] not in gone]


def failure_in_a_calm(r):
    r.asked(18, "reset", "-", 0)


def slow_in_a_calm(r):
    r.execute(16.9, "b", 2, B, r.asked(16.9, "ok", "b", 2, took=4))


def line_outside(r):
    r.line(4.8, "b")


def line_lost(r):
    r.line(18, "b", executed=False)


def line_twice(r):
    r.line(18, "b")
    r.executed.append(r.executed[-1])


def wrong_precondition_taken(r):
    r.note(18, "step_down.answered", node="s2", right=False, ok=True, outcome="x", asked=0,
           expected_node="s2", expected_token=1)


def stepped_down_unasked(r):
    r.log("s2", 19.9, "lease.draining", lease="orders", token=2, reason="requested")


def ended_by_itself(r):
    r.note(20.2, "sidecar.ended", node="s2", code=-6)


def failed_check(r):
    r.logs["s2"].append("CHECK failed: src/lease/engine.cc:1")


def sequence_twice(r):
    r.executed.append((*r.executed[-3][:3], r.asked(19.9, "reset"), *r.executed[-3][4:]))


def holes(r):
    del r.web[5]


def grown(r):
    r.note(1, "rss", bytes={"s2": 10 << 20})
    r.note(20.1, "rss", bytes={"s2": 40 << 20})


def nothing_served(r):
    r.web, r.executed, r.clients = [], [], []


@pytest.mark.parametrize("fault, found", [
    (overlap, "OVERLAP"),
    (former_holder_of_the_same_token, "OVERLAP"),
    (repeated_token, "did not raise the token"),
    (lower_token, "did not raise the token"),
    (token_twice_after_one_loss, "did not raise the token"),
    (token_twice_after_a_loss_that_took_long, "did not raise the token"),
    (token_twice_by_the_logs_alone, "did not raise the token"),
    (overlap_after_a_loss, "OVERLAP"),
    (overlap_after_a_loss, "terms overlap"),
    (lower_token_than_it_held, "had held or seen"),
    (lower_token_than_it_saw, "had held or seen"),
    (finished_seconds_later, "OVERLAP"),
    (finished_seconds_later, "outside its sidecar's term"),
    (finished_seconds_later, "without a grant"),
    (repair_without_a_loss, "no store had lost a write:"),
    (repair_of_which_nobody_told, "no sidecar had told"),
    (repair_of_a_rightful_holder, "not one given out again"),
    (store_log_empty, "MONITOR heard nothing"),
    (store_log_deaf, "MONITOR heard too little"),
    (cut_short, "ended before its end"),
    (without_the_record_of_requests, "is missing"),
    (acknowledged_and_lost, "LOST"),
    (acknowledged_by_another, "answered by another"),
    (post_executed_twice, "executed or sent twice"),
    (post_sent_twice, "executed or sent twice"),
    (nothing_done_but_done, "and it was"),
    (wrong_body, "with a wrong body"),
    (wrong_answer, "not what was asked for"),
    (through_the_fence, "let through the fence"),
    (admitted_after_the_term, "OVERLAP"),
    (outside_its_term, "outside its sidecar's term"),
    (token_that_was_never_acquired, "never acquired"),
    (beyond_the_grant, "without a grant"),
    (served_after_the_release, "without a grant"),
    (two_terms_in_the_logs, "terms overlap"),
    (long_gap, "nobody served in time"),
    (failure_in_a_calm, "in a calm"),
    (slow_in_a_calm, "in a calm"),
    (line_outside, "lines reached an application outside"),
    (line_lost, "acknowledged lines were never executed"),
    (line_twice, "lines were executed twice"),
    (wrong_precondition_taken, "wrong precondition"),
    (stepped_down_unasked, "nobody had asked for"),
    (ended_by_itself, "ended or complained"),
    (failed_check, "ended or complained"),
    (sequence_twice, "stamped more than one"),
    (holes, "has holes"),
    (grown, "sidecars grew"),
    (nothing_served, "nothing to judge"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_the_checker_finds(fault, found, tmp_path):
    records = Records(tmp_path)
    fault(records)
    assert found in records.check()


def test_the_checker_finds_nothing_where_all_is_well(tmp_path):
    assert Records(tmp_path).check() == ""


def lost_write(r):
    """A store that lost writes gave token 2 out again; the fence refused the second."""
    r.note(17, "store.lost", node="store", how="FLUSHALL")
    r.acquire("s1", 1, "c" * 32, 19.5)
    r.grant(19.5, 1, "c" * 32)
    r.execute(19.6, "a", 1, "c" * 32, r.asked(19.6, "status_409", "-", 0), "BF")
    r.journal[-2]["at"] = r.ns(19.4)  # the calm was over


def lost_write_that_took_long(r):
    """The store carried the FLUSHALL out between the first token 1 and the second, long after it was
    told to."""
    lost_write(r)
    r.note(19.65, "store.loss_over", node="store")
    r.log("s1", 19.7, "gate.closed", gate="web", token=1, reason="absent")
    r.log("s1", 19.7, "lease.lost", token=1, reason="absent")
    r.acquire("s2", 1, "d" * 32, 19.8)
    r.grant(19.8, 1, "d" * 32)


def lost_write_without_a_grant(r):
    """What a store forgot excuses a token, and nothing else."""
    lost_write(r)
    r.grants = [g for g in r.grants if g.get("process") != "c" * 32]


def thaw(r):
    """s1 was stopped between the check of its permit and its write; the fence refused it."""
    r.journal = [line for line in r.journal if line["what"] != "sidecar.killed"]
    r.note(4.15, "sidecar.stopping", node="s1")
    r.note(5.6, "sidecar.going_on", node="s1")
    r.log("s1", 5.602, "gate.closed", gate="web", token=1, reason="host_frozen")
    r.log("s1", 5.602, "lease.lost", token=1, reason="host_frozen")
    r.journal.sort(key=lambda line: line["at"])
    r.execute(5.601, "a", 1, A, r.asked(5.601, "reset", "-", 0), "BF")


def stopped_before_it_could_tell(r):
    """s1 acquired again and was stopped before it wrote so; at the thaw that term was over."""
    r.note(4.5, "sidecar.stopping", node="s1")
    r.note(8, "sidecar.going_on", node="s1")
    r.acquire("s1", 1, "c" * 32, 8.001)
    r.log("s1", 8.002, "gate.closed", gate="web", token=1, reason="host_frozen")
    r.log("s1", 8.002, "lease.lost", token=1, reason="host_frozen")
    r.journal[0]["nodes"]["s1"]["ttl"] = 1.0
    r.journal.sort(key=lambda line: line["at"])
    r.logs["s1"] = r.logs["s1"][1:]  # it had not been the holder before
    r.executed = [row for row in r.executed if row[2] != "a"]
    r.web = [row for row in r.web if row[7] != "a"]


def told_twice(r):
    """s2 ended at once, which was noticed later than s1 took over."""
    r.log("s2", 19.8, "sidecar.stopped", exit_code=1)
    r.note(19.7, "sidecar.told_to_end", node="s2")
    r.note(19.75, "sidecar.told_to_end", node="s2")
    r.acquire("s1", 3, "c" * 32, 19.9)
    r.note(20.3, "sidecar.ended", node="s2", code=1)
    r.journal.sort(key=lambda line: line["at"])
    r.executed = [row for row in r.executed if row[1] < r.ns(19.8)]
    r.web = [row for row in r.web if row[3] < r.ns(19.8)]


def body_of_the_dead(r):
    """The rest of a body came from the kernel of s1, which was dead."""
    number = r.asked(4.14, "reset", "-", 0)
    r.web[-1] = (number, "POST/204800", *r.web[-1][2:])
    r.execute(5.6, "a", 1, A, number, "B")


def lost_and_finished(r, kind, at):
    """s1 lost the lease and lives; a request that was in flight reaches its application then, and the
    fence refuses it."""
    r.journal = [line for line in r.journal if line["what"] != "sidecar.killed"]
    r.log("s1", 4.15, "gate.closed", gate="web", token=1, reason="superseded")
    r.log("s1", 4.15, "lease.lost", token=1, reason="superseded")
    number = HOLD_IDS
    r.hold.append((number, kind, 0, r.ns(4.1), r.ns(4.1), r.ns(5.6), "status_409", "-", 0, 0))
    r.execute(at, "a", 1, A, number, "BF")


def finished_after_the_term(r):
    """Its body came slowly."""
    lost_and_finished(r, "POST/204800", 5.6)


def finished_just_after_the_term(r):
    """In one piece, and on its way when the lease was lost."""
    lost_and_finished(r, "POST/0", 4.2)


def repaired(r):
    """A sidecar told of the loss, and an operator raised the record's token."""
    lost_write(r)
    r.log("s2", 19.52, "lease.token_regression", lease="orders", token=1)
    repair(r)


@pytest.mark.parametrize("excused", [lost_write, lost_write_that_took_long, thaw,
                                     stopped_before_it_could_tell, told_twice, body_of_the_dead,
                                     finished_after_the_term, finished_just_after_the_term,
                                     repaired],
                         ids=lambda value: value.__name__)
def test_the_checker_excuses_what_a_fence_covers(excused, tmp_path):
    records = Records(tmp_path)
    excused(records)
    faults = records.check()
    for fault in ("OVERLAP", "overlap", "did not raise", "fence", "outside", "grant", "seen",
                  "not explained"):
        assert fault not in faults, faults


def test_the_checker_excuses_a_lost_write_of_its_token_alone(tmp_path):
    records = Records(tmp_path)
    lost_write_without_a_grant(records)
    assert "without a grant" in records.check()


def test_the_checker_excuses_one_act_at_a_thaw_and_no_second(tmp_path):
    records = Records(tmp_path)
    thaw(records)
    records.execute(5.65, "a", 1, A, records.asked(5.65, "reset", "-", 0), "BF")
    assert "OVERLAP" in records.check()

