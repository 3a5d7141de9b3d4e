"""The roads between sidecars, store and clients, in two kinds, and what can be done to them.

Namespaces: each node (a sidecar with its application) and the store has a network namespace of its
own, joined by a bridge in the namespace of this very process (chaos.py starts itself again inside
one). They have no names: each lives as long as the process that holds it, which ends with us whatever
happens, so there is nothing to remove. Faults are iptables rules inside a node's namespace, and links.

Loopback: all on 127.0.0.1, a FaultProxy of the harness between each sidecar and the store.
"""

import os
import random
import shutil
import subprocess
import sys

from harness.fault_proxy import CUT_REPLY, STALL_REPLY, SWALLOW, FaultProxy, is_lease_write
from harness.process import Process
from harness.wait import wait_for
from moves.scene import steady_ports

NETWORK = "10.77.0."
HUB, STORE, FIRST_NODE = NETWORK + "1", NETWORK + "2", 11
# How this process gets a network of its own: as root, or as root of a user namespace of its own.
UNSHARE = (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"])
PROBE = ("ip link set lo up && ip link add chaos0 type bridge && "
         "iptables -A OUTPUT -p tcp -d 10.0.0.1 -m statistic --mode random --probability 0.5 "
         "-j REJECT --reject-with tcp-reset")
PORTS = {"web": 8080, "web_peer": 8081, "hold": 8090, "raw": 9000, "raw_peer": 9001, "app": 7000,
         "lines": 7001}
# What can happen to a road, in Namespaces.
TO_STORE = ("cut_store", "mute_store", "deaf_store", "reset_store")
BETWEEN = ("cut_peers", "mute_peers", "reset_peers", "cut_clients", "loss", "link_down")


def _run(*words):
    done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=20, check=False)
    return done.returncode == 0, done.stderr.strip()


def way_into_a_network():
    """(command that gives its argument a network of its own, ""), or (None, why not)."""
    for tool in ("unshare", "nsenter", "ip", "iptables"):
        if shutil.which(tool) is None and not os.access(f"/usr/sbin/{tool}", os.X_OK):
            return None, f"{tool} is missing"
    why = ""
    for way in UNSHARE:
        ok, why = _run(*way, "sh", "-c", PROBE)
        if ok:
            return way, ""
    return None, why or "network namespaces do not work here"


class Namespaces:
    kind = "namespaces"

    def __init__(self, directory, count, stack):
        self._holders = {}
        self._store_on_road = False
        _must("ip", "link", "set", "lo", "up")
        _must("ip", "link", "add", "br0", "type", "bridge", "forward_delay", 0)
        _must("ip", "addr", "add", HUB + "/24", "dev", "br0")
        _must("ip", "link", "set", "br0", "up")
        self._hosts = {"store": STORE}
        self._hosts.update({f"s{i + 1}": NETWORK + str(FIRST_NODE + i) for i in range(count)})
        for name, address in self._hosts.items():
            self._join(directory, name, address, stack)

    def _join(self, directory, name, address, stack):
        holder = Process(["unshare", "--net", "sleep", "infinity"], directory / "namespaces.out")
        stack.callback(holder.close)
        ours = os.readlink("/proc/self/ns/net")
        wait_for(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != ours, 10, f"network of {name}")
        self._holders[name] = holder
        _must("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns",
              holder.pid)
        _must("ip", "link", "set", f"to-{name}", "master", "br0", "up")
        for words in (["link", "set", "lo", "up"], ["addr", "add", address + "/24", "dev", "eth0"],
                      ["link", "set", "eth0", "up"]):
            _must(*self.wrap(name), "ip", *words)

    def wrap(self, name):
        """The command that puts another into the namespace."""
        return ["nsenter", f"--net=/proc/{self._holders[name].pid}/ns/net", "--"]

    def host(self, name):
        return self._hosts[name]

    def ports(self, _):
        return PORTS

    def store_for(self, _, store):
        """What a sidecar is told of the store. One in files is on no road."""
        self._store_on_road = hasattr(store, "port")
        return store

    # ---- faults: each returns what ends it ----

    def _rules(self, name, rules):
        """Puts rules (words after the chain) in; returns what takes them out. Local traffic of a
        node, to its application, is no road and is never in a rule."""
        for rule in rules:
            self._iptables(name, "-I", rule)

        def undo():
            for rule in rules:
                self._iptables(name, "-D", rule)
        return undo

    def _iptables(self, name, what, rule):
        ok, why = _run(*self.wrap(name), "iptables", "-w", what, *rule)
        if not ok and what == "-I":
            raise AssertionError(f"iptables {what} {rule}: {why}")  # -D after heal(): gone already

    @staticmethod
    def _drop(chain, address):
        return [chain, "-s" if chain == "INPUT" else "-d", address, "-j", "DROP"]

    def _others(self, name):
        return [address for other, address in self._hosts.items() if other not in (name, "store")]

    def cut_store(self, name, _):
        return self._rules(name, [self._drop(chain, STORE) for chain in ("INPUT", "OUTPUT")])

    def mute_store(self, name, _):
        """What is asked arrives and is done; no answer comes back."""
        return self._rules(name, [self._drop("INPUT", STORE)])

    def deaf_store(self, name, _):
        return self._rules(name, [self._drop("OUTPUT", STORE)])

    def reset_store(self, name, _):
        return self._rules(name, [["OUTPUT", "-p", "tcp", "-d", STORE, "-j", "REJECT",
                                   "--reject-with", "tcp-reset"]])

    def cut_peers(self, name, _):
        return self._rules(name, [self._drop(chain, each) for each in self._others(name)
                                  for chain in ("INPUT", "OUTPUT")])

    def mute_peers(self, name, _):
        return self._rules(name, [self._drop("INPUT", each) for each in self._others(name)])

    def reset_peers(self, name, _):
        return self._rules(name, [["OUTPUT", "-p", "tcp", "-d", each, "-j", "REJECT",
                                   "--reject-with", "tcp-reset"] for each in self._others(name)])

    def cut_clients(self, name, _):
        return self._rules(name, [self._drop(chain, HUB) for chain in ("INPUT", "OUTPUT")])

    def loss(self, name, draw):
        share = f"{draw.uniform(0.05, 0.5):.2f}"
        return self._rules(name, [[chain, way, "eth0", "-m", "statistic", "--mode", "random",
                                   "--probability", share, "-j", "DROP"]
                                  for chain, way in (("INPUT", "-i"), ("OUTPUT", "-o"))])

    def link_down(self, name, _):
        _run("ip", "link", "set", f"to-{name}", "down")
        return lambda: _run("ip", "link", "set", f"to-{name}", "up")

    @property
    def faults(self):
        return (TO_STORE if self._store_on_road else ()) + BETWEEN

    def heal(self):
        for name in self._hosts:
            _run(*self.wrap(name), "iptables", "-w", "-F")
            _run("ip", "link", "set", f"to-{name}", "up")


class Loopback:
    kind = "loopback"

    def __init__(self, _, count, stack):
        names = [f"s{i + 1}" for i in range(count)]
        free = steady_ports(count * len(PORTS))
        self._ports = {name: dict(zip(PORTS, free[i * len(PORTS):])) for i, name in enumerate(names)}
        self._proxies = {}
        self._stack = stack

    def wrap(self, _):
        return []

    def host(self, _):
        return "127.0.0.1"

    def ports(self, name):
        return self._ports[name]

    def store_for(self, name, store):
        if not hasattr(store, "port"):
            return store
        self._proxies[name] = FaultProxy(store.port)
        self._stack.callback(self._proxies[name].close)
        return self._proxies[name]

    # ---- faults ----

    def black_hole(self, name, _):
        self._proxies[name].black_hole()
        return lambda: self._proxies[name].black_hole(False)

    def refuse(self, name, _):
        self._proxies[name].refuse()
        return lambda: self._proxies[name].refuse(False)

    def resets(self, name, _):
        self._proxies[name].reset_all()
        return self._proxies[name].reset_all

    def slow_answers(self, name, draw):
        seconds = draw.uniform(0.05, 0.6)
        chance = random.Random(draw.random())
        self._proxies[name].reply_delay = lambda: chance.uniform(0, seconds)

        def undo():
            self._proxies[name].reply_delay = None
        return undo

    def _lost(self, name, action, times):
        rule = self._proxies[name].on(is_lease_write, action, times=times)

        def undo():
            rule.left = 0
            self._proxies[name].reset_all()  # what stands still for want of an answer
        return undo

    def lost_answers(self, name, draw):
        return self._lost(name, CUT_REPLY, draw.randint(1, 4))

    def stalled_answers(self, name, draw):
        return self._lost(name, STALL_REPLY, draw.randint(1, 4))

    def swallowed_writes(self, name, draw):
        return self._lost(name, SWALLOW, draw.randint(1, 4))

    @property
    def faults(self):
        return ("black_hole", "refuse", "resets", "slow_answers", "lost_answers", "stalled_answers",
                "swallowed_writes") if self._proxies else ()

    def heal(self):
        for proxy in self._proxies.values():
            proxy.reply_delay = None
            proxy.black_hole(False)
            proxy.refuse(False)
            proxy.log.clear()  # hours of it


def _must(*words):
    ok, why = _run(*words)
    if not ok:
        raise AssertionError(f"{' '.join(map(str, words))}: {why}")


def enter(way):
    """Starts this program again in a network of its own; does not return."""
    os.execvp(way[0], [*way, "--", sys.executable, *sys.argv, "--inside"])
