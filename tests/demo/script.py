"""The scripted failover: four acts, each with what was done, what happened when, and the gap that a
client saw. Fails on wrong behaviour only; how fast it was is printed, not judged, since the machine
may be busy."""

import http.client
import json
import signal
import threading
import time

from stage import TTL, Failure, wait_until
from tell import (bold, dim, figure, green, heading, milliseconds, moment, paragraph, picture,
                  say)
from traffic import Client, Taps

# Without proof of death a standby waits one TTL since it last saw the record change, and that was
# at most one renewal (0.3 s here) before the kill.
PROVEN_DEATH_MAX = TTL * 0.75
PROVEN_DEATH_AIM = 0.1
STEADY_REQUESTS = 150  # served between two acts, so that a gap stands out


def expect(right, sentence):
    if not right:
        raise Failure(sentence)


def get(address, timeout=2.0):
    """(status, body); (None, how it ended) where there was no answer."""
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        return answer.status, answer.read().decode().strip()
    except (OSError, http.client.HTTPException) as error:
        return None, f"no answer ({type(error).__name__})"
    finally:
        connection.close()


class Play:
    def __init__(self, stage, client, taps):
        self.stage = stage
        self.client = client
        self.taps = taps
        self.summary = []

    # ---- what the acts share ----

    def cast(self):
        """(holder, standby), both settled: nobody is in its hold-off any more."""
        def settled():
            pair = self.stage.holder()
            return pair if pair and pair[1].is_in("standby") else None
        pair = wait_until("one holding and one standing by", settled)
        goal = len(self.client.served) + STEADY_REQUESTS
        wait_until(f"{STEADY_REQUESTS} requests being served",
                   lambda: len(self.client.served) >= goal)
        return pair

    def newest_token(self):
        return self.taps.seen[-1][2]

    def take_over(self, standby, since):
        """Waits until the standby's gate opens and a request was served by it; both times."""
        opened = wait_until(f"{standby.name} taking over",
                            lambda: standby.event("gate.opened", since))
        served = wait_until(f"a request served by {standby.name}",
                            lambda: self.client.first_from(standby.name, since))
        return opened, served

    def gap(self, since, name):
        length = self.client.longest_gap(since)
        self.summary.append((name, length))
        figure(f"the client was without an answer for {milliseconds(length)}")
        return length

    # ---- the acts ----

    def act_1(self):
        holder, standby = self.cast()
        heading("1. One serves, the other stands by")
        status, body = get(holder.gate)
        expect(status == 200, f"{holder.name} holds the lease and must serve; it answered {status}")
        say(f"  curl http://{holder.gate}/   {green('200')}  {body}")
        status, body = get(standby.gate)
        expect(status == 503, f"{standby.name} does not hold and must refuse; it answered {status}")
        say(f"  curl http://{standby.gate}/   {bold('503')}  {json.loads(body)['detail']}")
        wait_until("the application seeing a fencing token", lambda: self.taps.seen)
        paragraph(f"""The application behind {holder.name} was told the term's fencing token,
            {self.newest_token()}, in the header Lease-Fencing-Token.""")

    def act_2(self):
        holder, standby = self.cast()
        heading(f"2. A planned move: leasehold step-down on {holder.name}")
        before = self.newest_token()
        begun = time.time()
        result = holder.run("step-down", "--yes")
        expect(result.returncode == 0,
               f"step-down must end with 0, not {result.returncode}: {result.stderr}")
        expect("taken_over_by_another_process" in result.stdout,
               f"{standby.name} should have taken over: {result.stdout}")
        opened, served = self.take_over(standby, begun)
        draining = holder.event("lease.draining", begun)
        released = holder.event("lease.released", begun)
        moment(0, f"leasehold step-down --yes --admin http://{holder.admin}")
        moment(draining["at"] - begun, f"{holder.name} admits nothing new, finishes the rest")
        moment(released["at"] - begun, f"{holder.name} has given the lease back")
        moment(opened["at"] - begun, f"{standby.name} holds it, token {opened['token']}")
        moment(served - begun, f"{standby.name} serves")
        expect(int(opened["token"]) > before, f"the token must rise above {before}")
        self.gap(begun, "planned step-down")

    def act_3(self):
        holder, standby = self.cast()
        heading(f"3. A crash: kill -9 {holder.pid} ({holder.name}, the holder)")
        begun = time.time()
        holder.child.end(signal.SIGKILL)
        opened, served = self.take_over(standby, begun)
        took = opened["at"] - begun
        moment(0, f"kill -9 {holder.pid}")
        moment(took, f"{standby.name} holds the lease, token {opened['token']}")
        moment(served - begun, f"{standby.name} serves")
        expect(took < PROVEN_DEATH_MAX,
               f"on the file store a death is proven, so a takeover must not wait for the TTL of "
               f"{TTL:g} s; it took {took:.2f} s")
        self.gap(begun, "kill -9 of the holder")
        paragraph(f"""No TTL was waited for. The dead process's lock on its life file was free, which
            proves that it is gone (the aim is {milliseconds(PROVEN_DEATH_AIM)}; this time
            {milliseconds(took)}). {holder.name} is started again, and stands by.""")
        holder.start()

    def act_4(self):
        holder, standby = self.cast()
        heading(f"4. A freeze: kill -STOP {holder.pid} ({holder.name}, the holder)")
        old_token = self.newest_token()
        begun = time.time()
        holder.child.send(signal.SIGSTOP)
        wait_until(f"{holder.name} standing still", holder.child.stopped)
        # A request that reaches the frozen holder's socket, and waits there for it to wake up.
        late = {}
        asker = threading.Thread(target=lambda: late.update(answer=get(holder.gate, 30)))
        asker.start()
        opened, served = self.take_over(standby, begun)
        moment(0, f"kill -STOP {holder.pid}; a request waits in its socket")
        moment(opened["at"] - begun, f"its lease has run out: {standby.name} holds it, token "
                                     f"{opened['token']}")
        moment(served - begun, f"{standby.name} serves")
        woken = time.time()
        holder.child.send(signal.SIGCONT)
        asker.join()
        moment(woken - begun, f"kill -CONT {holder.pid}: {holder.name} wakes and still believes "
                              "that it holds")
        lost = wait_until(f"{holder.name} noticing the loss",
                          lambda: holder.event("lease.lost", woken))
        at = max(lost["at"], woken)  # a log's time is cut to the millisecond
        moment(at - begun, f"{holder.name} shuts its gate, reason {lost['reason']}")
        status, body = late["answer"]
        expect(status != 200, "the request that waited in the frozen holder's socket must be "
                              "refused, not served under a token that is over")
        say(dim(" " * 14) + f"the request that had waited there got {bold(str(status or body))}")
        stale = [t for at, _, t in self.taps.seen if at > opened["at"] and t <= old_token]
        expect(not stale, f"after token {opened['token']} an application saw token {stale[:1]}")
        self.gap(begun, "freeze beyond the TTL")
        paragraph("""A frozen process cannot be proven dead, so this costs about one TTL: the price
            of never having two holders.""")


def play(stage):
    begun = time.monotonic()
    stage.start_applications()
    taps = Taps([(app.name, app.port) for app in stage.applications])
    stage.start_sidecars([f"127.0.0.1:{port}" for port in taps.ports])
    say(bold("Leasehold: a failover in four acts"))
    picture(stage, "A client asks up to 200 times a second and tries the other gate when one refuses; a "
                   "wire tap before each application notes the fencing tokens that reach it.")
    client = Client([(s.name, s.gate) for s in stage.sidecars])
    client.start()
    acts = Play(stage, client, taps)
    for act in (acts.act_1, acts.act_2, acts.act_3, acts.act_4):
        act()
    acts.cast()  # the woken one stands by again
    client.stop()
    codes = stage.end_sidecars()
    taps.stop()
    expect(codes == [0, 0], f"SIGTERM must end both sidecars with 0; they ended with {codes}")
    tokens = taps.tokens()
    expect(all(a < b for a, b in zip(tokens, tokens[1:])),
           f"the applications must see tokens only rise; they saw {tokens}")
    expect(len(tokens) >= 4, f"four terms must be seen, not {tokens}")

    heading("It went right")
    for name, gap in acts.summary:
        say(f"  {name:<24} {milliseconds(gap):>8}  without an answer")
    say(f"  fencing tokens           {' < '.join(map(str, tokens))}  as the applications saw them, "
        f"over {len(taps.seen)} requests")
    say("  SIGTERM                  both sidecars released and ended with 0")
    say(dim(f"\n  {time.monotonic() - begun:.1f} s in all; `make run` on a terminal lets you break "
            "things yourself"))
    return 0
