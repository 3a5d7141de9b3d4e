"""A TCP proxy between a sidecar and a store that understands what they say to each other, so that
faults hit what they mean: this write's answer, not whatever bytes come next. It keeps a log of every
command and answer. Redis by itself; another store's way of talking is a protocol (dynamo_wire.py)."""

import collections
import queue
import socket
import threading
import time

from .resp import RedisProtocol

# What a rule may do with a command it matches:
STALL_REPLY = "stall_reply"    # the server does it; from its answer on nothing comes back here
CUT_REPLY = "cut_reply"        # the server does it; instead of its answer the connection is reset
CUT_BEFORE = "cut_before"      # the server never sees it; the connection is reset
SWALLOW = "swallow"            # the server never sees it; nothing comes back here from now on
ANSWER = "answer"              # the server never sees it; `reply` (bytes) is the answer
PASS = "pass"                  # nothing; for the sake of `before` and `after`


class Logged:
    """A command and, once it was passed on to the sidecar, when its answer went."""

    def __init__(self, at, command):
        self.at = at
        self.command = command
        self.answer = None
        self.answered_at = None
        self.answer_passed = False
        self.fault = None

    def __repr__(self):
        return f"<{self.at:.3f} {self.command.words[:1]} {self.command.record} -> {self.answer}>"


class Rule:
    """`before` is called with the command in hand, `after` once the server has done it."""

    def __init__(self, matches, action, times, reply=b"", before=None, after=None):
        self.matches = matches
        self.action = action
        self.left = times
        self.reply = reply
        self.before = before
        self.after = after
        self.hits = 0
        self.hit_at = 0.0  # the last one


def is_lease_write(command):
    return command.is_write


def is_lease_read(command):
    return command.is_read


def is_renewal(command):
    """A write under the holder's own record; releases and acquisitions are not meant."""
    return command.is_write and command.state == "held" and \
        command.expected_version.startswith(f"{command.process_id}/{command.token}/")


class FaultProxy:
    """Listens on a port of its own; a Sidecar takes it for the store it stands before."""

    def __init__(self, port, protocol=RedisProtocol()):
        self._server_port = port
        self.protocol = protocol
        self.environment = protocol.environment
        self._lock = threading.RLock()
        self._rules = []
        # Callable -> seconds, asked per answer. Answers that wait overlap, as on a long road; their
        # order is kept.
        self.reply_delay = None
        self.log = []            # Logged, in the order the proxy saw the commands
        self._pipes = set()
        self._black_hole = threading.Event()
        self._refuse = False
        self.accepted = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self):
        return self.protocol.url("127.0.0.1", self.port)

    def store_options(self):
        return self.protocol.store_options(self.url)

    # ---- faults ----

    def on(self, matches, action, times=1, reply=b"", before=None, after=None):
        """One-shot by default: the next `times` commands that match. Returns the Rule (hits)."""
        rule = Rule(matches, action, times, reply, before, after)
        with self._lock:
            self._rules.append(rule)
        return rule

    def black_hole(self, on=True):
        """From now on nothing passes in either direction; connections stay, new ones are accepted."""
        if on:
            self._black_hole.set()
            return
        self._black_hole.clear()
        self.reset_all()  # what was swallowed is gone; a connection with a hole in it is none

    def refuse(self, on=True):
        """New connections are reset at once, old ones now."""
        self._refuse = on
        if on:
            self.reset_all()

    def reset_all(self):
        with self._lock:
            pipes = list(self._pipes)
        for pipe in pipes:
            pipe.reset()

    # ---- the log ----

    def writes(self, since=0.0):
        return [l for l in list(self.log) if l.command.is_write and l.at >= since]

    def reads(self, since=0.0):
        return [l for l in list(self.log) if l.command.is_read and l.at >= since]

    # ---- inside ----

    def _accept(self):
        try:
            while True:
                client, _ = self._listener.accept()
                self.accepted += 1
                if self._refuse:
                    _reset(client)
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self._server_port), 5)
                except OSError:
                    _reset(client)
                    continue
                server.settimeout(None)
                pipe = _Pipe(self, client, server)
                with self._lock:
                    self._pipes.add(pipe)
                pipe.start()
        except OSError:
            pass  # closed

    def rule_for(self, command):
        with self._lock:
            for rule in self._rules:
                if rule.left > 0 and rule.matches(command):
                    rule.left -= 1
                    rule.hits += 1
                    rule.hit_at = time.time()
                    return rule
        return None

    def swallows(self):
        return self._black_hole.is_set()

    def forget(self, pipe):
        with self._lock:
            self._pipes.discard(pipe)

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self.reset_all()
        self._thread.join(5)


class _Pipe:
    """One connection: a thread per direction, and one that sends answers when they are due. Servers
    answer in order, so the answers' fates wait in a queue, one per command."""

    def __init__(self, proxy, client, server):
        self._proxy = proxy
        self._protocol = proxy.protocol
        self._client = client
        self._server = server
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._fates = collections.deque()  # (rule or None, Logged)
        self._lock = threading.Lock()
        self._subscribed = False
        self._stalled = False  # a TCP stream with a hole does not exist: it stands still instead
        self._due = queue.Queue()  # (time, bytes or None: an end in order, Logged or None); None ends it

    def start(self):
        for target in (self._requests, self._replies, self._answers):
            threading.Thread(target=target, daemon=True).start()

    def reset(self):
        self._due.put(None)
        _reset(self._client)
        _reset(self._server)
        self._proxy.forget(self)

    def _requests(self):
        parser = self._protocol.parser()
        try:
            while data := self._client.recv(65536):
                if self._proxy.swallows():
                    continue
                for value, raw in parser.feed(data):
                    self._command(self._protocol.command(value), raw)
        except (OSError, AssertionError):
            pass
        self.reset()

    def _command(self, command, raw):
        logged = Logged(time.time(), command)
        self._proxy.log.append(logged)
        if self._protocol.is_subscription(command):
            self._subscribed = True
        rule = self._proxy.rule_for(command)
        if rule is not None:
            logged.fault = rule.action
            if rule.before is not None:
                rule.before()
            if rule.action == CUT_BEFORE:
                raise OSError("rule")
            if rule.action == SWALLOW:
                self._stalled = True
                return
            if rule.action == ANSWER and self._protocol.placeholder is None:
                if rule.after is not None:
                    rule.after()
                self._send_later(rule.reply, logged)  # nothing else is out on this connection
                return
            if rule.action == ANSWER:
                raw = self._protocol.placeholder  # keeps the order of answers; its own is replaced
        with self._lock:
            self._fates.append((rule, logged))
        self._server.sendall(raw)

    def _replies(self):
        parser = self._protocol.parser()
        try:
            while True:
                data = self._server.recv(65536)
                if not data and self._protocol.ends_in_order:
                    return self._send_later(None, None)
                if not data:
                    break
                if self._proxy.swallows():
                    continue
                if self._subscribed:
                    self._send_later(data, None)
                    continue
                for value, raw in parser.feed(data):
                    self._reply(value, raw)
        except (OSError, AssertionError):
            pass
        self.reset()

    def _reply(self, value, raw):
        with self._lock:
            rule, logged = self._fates.popleft() if self._fates else (None, None)
        if logged is not None:
            logged.answer = value
        action = None if rule is None else rule.action
        if rule is not None and rule.after is not None:
            rule.after()
        if action == STALL_REPLY:
            self._stalled = True
        if action == CUT_REPLY:
            raise OSError("rule")
        if action == ANSWER:
            raw = rule.reply
        self._send_later(raw, logged)

    def _send_later(self, raw, logged):
        delay = self._proxy.reply_delay
        self._due.put((time.monotonic() + (0 if delay is None else delay()), raw, logged))

    def _answers(self):
        try:
            while (answer := self._due.get()) is not None:
                due, raw, logged = answer
                time.sleep(max(0.0, due - time.monotonic()))  # the fault itself
                if self._stalled or self._proxy.swallows():
                    continue
                if raw is None:
                    break
                if logged is not None:
                    logged.answered_at = time.time()
                    logged.answer_passed = True
                self._client.sendall(raw)
            self._client.shutdown(socket.SHUT_WR)
        except OSError:
            self.reset()


def _reset(sock):
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    try:
        sock.close()
    except OSError:
        pass
