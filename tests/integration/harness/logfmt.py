"""logfmt lines of the sidecar (src/observe/log_line.cc): key=bare or key="JSON string"."""

import datetime
import json
import threading

_DECODER = json.JSONDecoder()


def parse(line):
    """The pairs of a line as a dict; None for what is not a log line."""
    fields = {}
    at = 0
    while at < len(line):
        if line[at] == " ":
            at += 1
            continue
        equals = line.find("=", at)
        if equals < 0:
            return None
        key, at = line[at:equals], equals + 1
        if line[at:at + 1] == '"':
            try:
                value, at = _DECODER.raw_decode(line, at)
            except ValueError:
                return None
        else:
            end = line.find(" ", at)
            end = len(line) if end < 0 else end
            value, at = line[at:end], end
        fields[key] = value
    return fields if "ts" in fields and "event" in fields else None


def seconds(stamp):
    """2026-01-31T12:00:00.123Z as seconds of the epoch."""
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


class Event(dict):
    """One line. `at` are seconds of the wall clock of who wrote it; milliseconds are its grain."""

    @property
    def at(self):
        return seconds(self["ts"])

    @property
    def name(self):
        return self["event"]

    @property
    def token(self):
        return int(self.get("token", 0))

    @property
    def reason(self):
        return self.get("reason", "")


class LogReader:
    """Follows a log file that grows. Any thread may ask."""

    def __init__(self, path):
        self._path = path
        self._offset = 0
        self._rest = b""
        self._events = []
        self._lock = threading.Lock()

    def read(self):
        """Every line so far, as Events."""
        with self._lock:
            self._read_on()
            return list(self._events)

    def _read_on(self):
        with open(self._path, "rb") as f:
            f.seek(self._offset)
            data = f.read()
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            fields = parse(line.decode(errors="replace"))
            if fields is not None:
                self._events.append(Event(fields))
