"""The demo to play with: tells what to try, then each change as it happens, until Ctrl-C."""

import itertools
import shutil
import sys
import time

from stage import Failure
from tell import bold, dim, green, heading, milliseconds, picture, red, say
from traffic import Client

RESTART_AFTER = 4.0  # seconds from a sidecar's end to its restart: long enough to see it missing
LOOK_EVERY = 0.25    # seconds

# What is told of the sidecars' logs: everything that changes who may act.
TOLD = {
    "lease.acquired": "holds the lease, token {token}",
    "lease.draining": "steps down ({reason}): admits nothing new, finishes what is in flight",
    "lease.released": "has given the lease back",
    "lease.lost": "has lost the lease ({reason}); its gate is shut",
    "lease.at_risk": "could not renew; the lease is at risk",
    "lease.restored": "renews again",
    "sidecar.stopping": "is asked to end",
}


def _commands(stage):
    first, second = stage.sidecars
    binary = stage.binary
    heading("Try, in another terminal")
    for command, what in (
            (f"curl -i http://{first.gate}/", "one of these serves"),
            (f"curl -i http://{second.gate}/", "the other refuses, and says why"),
            (f"{binary} status --admin http://{first.admin}", "as S1 sees it"),
            (f"{binary} status --admin http://{second.admin}", "as S2 sees it"),
            (f"{binary} step-down --yes --admin http://{first.admin}", "a planned move, if S1 holds"),
            (f"kill -9 {first.pid}", f"a crash of S1 ({second.pid} is S2); started again after 4 s"),
            (f"kill -STOP {first.pid}", "a freeze of S1; kill -CONT ends it"),
            (f"curl http://{first.admin}/metrics", "for Prometheus")):
        say(f"  {bold(command)}\n      {dim(what)}")
    say(f"\n  configuration and logs: {stage.directory}/s1.conf, s1.log, s2.conf, s2.log")
    heading("What happens, until Ctrl-C")


class Follower:
    def __init__(self, stage, client):
        self.stage = stage
        self.client = client
        self.told = {sidecar.name: len(sidecar.lines()) for sidecar in stage.sidecars}
        self.ended = {}  # name → when
        self.served_by = None
        self.counted_to = 0

    def tell(self, at, text):
        """A line above the status line."""
        clock = time.strftime("%H:%M:%S", time.localtime(at)) + f".{int(at * 1000) % 1000:03d}"
        say(f"\r\x1b[K  {dim(clock)}  {text}")

    def look(self):
        news = []
        for sidecar in self.stage.sidecars:
            news += self._news(sidecar)
        for at, text in sorted(news):
            self.tell(at, text)
        for sidecar in self.stage.sidecars:
            self._restart_if_ended(sidecar)
        self._tell_client()
        self._status_line()

    def _news(self, sidecar):
        lines = sidecar.lines()
        told, self.told[sidecar.name] = self.told[sidecar.name], len(lines)
        return [(line["at"], f"{bold(sidecar.name)} " + TOLD[line["event"]].format_map(line))
                for line in lines[told:] if line["event"] in TOLD]

    def _restart_if_ended(self, sidecar):
        now = time.time()
        if sidecar.child.running():
            return
        if sidecar.name not in self.ended:
            self.ended[sidecar.name] = now
            self.tell(now, red(f"{sidecar.name} is gone") +
                      f" (process {sidecar.pid}); started again in {RESTART_AFTER:g} s")
        elif now - self.ended[sidecar.name] > RESTART_AFTER:
            del self.ended[sidecar.name]
            sidecar.start()
            self.tell(now, f"{bold(sidecar.name)} runs again, process {bold(str(sidecar.pid))}")

    def _tell_client(self):
        """Who serves now, when that changed, and how long nobody did."""
        served = self.client.served
        end = len(served)
        for before, now in itertools.pairwise(served[max(0, self.counted_to - 1):end]):
            if now[1] != before[1] or now[0] - before[0] > 1:
                self.tell(now[0], green(f"served by {now[1]}") +
                          f" after {milliseconds(now[0] - before[0])} without an answer")
        self.counted_to = end

    def _status_line(self):
        parts = []
        for sidecar in self.stage.sidecars:
            lease = sidecar.lease() if sidecar.child.running() else None
            if lease is None:
                parts.append(red(f"{sidecar.name} no answer"))
            elif lease["holding"]:
                parts.append(green(f"{sidecar.name} ● {lease['state']}") +
                             f" token {lease['token']}, {lease['expires_in_ms'] / 1000:.1f} s left")
            else:
                parts.append(f"{sidecar.name} ○ {lease['state']}")
        parts.append(f"{self.client.rate(time.time()):.0f} requests/s served")
        line = "   ".join(parts)
        # Colours take no columns: cut only where the terminal is really narrow.
        if shutil.get_terminal_size().columns >= 80:
            sys.stdout.write(f"\r\x1b[K  {line}")
            sys.stdout.flush()


def follow(stage):
    stage.start_applications()
    stage.start_sidecars([app.address for app in stage.applications])
    say(bold("Leasehold: two applications, two sidecars, one lease"))
    picture(stage, "A client asks up to 200 times a second and tries the other gate when one refuses.")
    _commands(stage)
    client = Client([(s.name, s.gate) for s in stage.sidecars])
    client.start()
    follower = Follower(stage, client)
    try:
        while True:
            follower.look()
            if not all(app.child.running() for app in stage.applications):
                raise Failure("an application has ended; the demo needs both")
            time.sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        client.stop()
        say("\r\x1b[K\n  ending: each sidecar steps down, releases and ends")
        codes = stage.end_sidecars()
        say(f"  exit codes {codes}; nothing it started is left")
        return 0
