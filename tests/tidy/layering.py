#!/usr/bin/env python3
"""Layering, bans and lengths: the rules of the house that no compiler checks.

    python3 tests/tidy/layering.py [--root DIR] [--report]

Which room may know which is read from the leasehold_room(...) lines of CMakeLists.txt, and the table
of src/README.md must say the same. --report also lists what is longer than src/STYLE.md aims at.
Exit code 1 if a rule is broken; each finding is a line "file:line: rule: what, and what would be right".
"""

import argparse
import pathlib
import re
import sys
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import cxx_text  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Each third-party library through its one door: header pattern -> the files that may include it.
DOORS = {
    r"uv\.h|uv/.*": r"src/loop/.*",
    r"openssl/.*": r"src/(loop/.*|crypto/digest\.cc)",
    r"llhttp\.h": r"src/proto/http1_syntax\.h",
    r"hiredis\.h|hiredis/.*": r"src/proto/resp\.cc",
    r"jansson\.h": r"src/proto/json\.cc",
    r"expat\.h": r"src/proto/xml\.cc",
    r"spdlog/.*|fmt/.*": r"src/observe/log\.cc",
    r"prometheus/.*": r"src/observe/metrics\.cc",
    r"toml\+\+/.*": r"src/config/toml\.cc",
    r"CLI/.*": r"src/cli/command_line\.cc",
}

STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits
clocale cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint
cstdio cstdlib cstring ctime cuchar cwchar cwctype deque exception execution filesystem format forward_list fstream
functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore
set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view strstream
syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray
variant vector version
""".split())
SYSTEM = re.compile(r"(sys|netinet|arpa|net|linux)/[a-z0-9_]+\.h|(unistd|fcntl|netdb|poll|signal|dirent|termios|pwd|grp|"
                    r"sched|spawn|dlfcn|limits|errno|malloc|pthread|time|syslog)\.h")

THREAD_HEADERS = {"thread", "mutex", "shared_mutex", "condition_variable", "future", "semaphore", "barrier", "latch",
                  "stop_token", "pthread.h"}
CLOCK_HEADERS = {"chrono", "time.h", "sys/time.h", "sys/timeb.h"}
PURE_ROOMS = {"lease", "crypto", "proto"}   # no input or output, no system calls
IO_HEADERS = {"fstream", "iostream", "filesystem", "syncstream", "ctime", "csignal", "thread", "random"}

# (rule, pattern in bare code, rooms where it may stand, what would be right)
CALL = r"(?<![\w.>])(?:std\s*::\s*|::\s*)?"
BANS = [
    ("clock", CALL + r"(?:clock_gettime|gettimeofday|timespec_get|ftime|times|clock|time)\s*\(", {"loop"},
     "only loop reads clocks; take the time as an argument or ask loop::Loop"),
    ("clock", r"_clock\s*::\s*now\b|\butc_now\b", {"loop"}, "only loop reads clocks"),
    ("random", r"\brandom_device\b|" + CALL + r"(?:rand|srand|random|drand48|getrandom|getentropy|arc4random\w*)\s*\(",
     {"loop"}, "seed a base::Random from loop::Loop, so that a run can be repeated"),
    ("threads", r"\bstd\s*::\s*(?:jthread|thread|async|mutex|\w+_mutex|lock_guard|unique_lock|scoped_lock|"
     r"condition_variable\w*|future|promise|counting_semaphore|binary_semaphore|barrier|latch|call_once|once_flag)\b"
     r"|\bthis_thread\b|\bpthread_\w+", {"loop"}, "one thread; blocking work goes through loop's worker pool"),
    ("sleep", CALL + r"(?:sleep|usleep|nanosleep|clock_nanosleep)\s*\(|\bsleep_(?:for|until)\b", set(),
     "nothing sleeps; use a loop::Timer"),
    ("libuv", r"\buv_\w+", {"loop"}, "libuv is loop's"),
    ("OpenSSL", r"\b(?:SSL|BIO|X509|EVP|ERR)_\w+\s*\(", {"loop", "crypto"}, "OpenSSL is loop's, digests are crypto's"),
    ("throw", r"\bthrow\b", set(), "no exceptions: return a Result, or CHECK what only a bug can do"),
]
TEST_BANS = {"sleep", "random"}   # what tests may not do either: no sleeping as proof, no run that cannot be repeated

SOURCE_LINES_MAX, HEADER_LINES_MAX = 600, 250
FUNCTION_LINES_MAX, TEST_FUNCTION_LINES_MAX = 70, 120
SOURCE_LINES_AIM, HEADER_LINES_AIM, FUNCTION_LINES_AIM = 300, 120, 40

# Spelled so that this file does not find itself.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
STAND_IN = re.compile(r"\b(st" r"ub(bed|s)?|not yet imple" r"mented)\b", re.I)
FOREIGN_PATH = re.compile(r"(?<![\w.~}$])/wo" r"rk(/|\b)|/ho" r"me/[a-z]")
TEXT_SUFFIXES = {".cc", ".h", ".py", ".md", ".txt", ".conf", ".yaml", ".yml", ".json", ".sh", ".tpl", ".cmake", ""}
TEXT_FOLDERS = ("src", "tests", "bench", "helm", ".ci")
CORPUS = "tests/fuzz/corpus"   # inputs, byte for byte
TEXT_FILES = ("Makefile", "CMakeLists.txt", "README.md", "sidecar.conf", ".clang-tidy", ".clang-format", ".gitignore")


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    rule: str
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


def rooms_of_cmake(root):
    """room -> the rooms it may know, from the leasehold_room lines."""
    text = re.sub(r"#[^\n]*", "", (root / "CMakeLists.txt").read_text())
    rooms = {}
    for call in re.finditer(r"^leasehold_room\(([^)]*)\)", text, re.M):
        name, *words = call[1].split()
        end = words.index("LIBS") if "LIBS" in words else len(words)
        rooms[name] = set(words[1:end]) if words[:1] == ["ROOMS"] else set()
    return rooms


def rooms_of_readme(root):
    """room -> the rooms of the last column, from the table of src/README.md."""
    rooms = {}
    for line in (root / "src" / "README.md").read_text().split("\n"):
        row = re.match(r"\|\s*`(\w+)`\s*\|.*\|([^|]*)\|\s*$", line)
        if row:
            rooms[row[1]] = set(re.findall(r"`(\w+)`", row[2]))
    return rooms


class Checker:
    def __init__(self, root):
        self.root = root
        self.rooms = rooms_of_cmake(root)
        self.findings = []
        self.long = []       # for --report

    def add(self, path, line, rule, text):
        self.findings.append(Finding(str(path.relative_to(self.root)), line, rule, text))

    def run(self):
        self.check_table()
        for folder in ("src", "tests", "bench"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in (".cc", ".h"):
                    self.check_cxx(path, folder)
        for path in self.texts():
            self.check_words(path)
        return self.findings

    def texts(self):
        for folder in TEXT_FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                hidden = any(part.startswith(".") or part == "__pycache__"
                             for part in path.relative_to(self.root / folder).parts)
                hidden |= (self.root / CORPUS) in path.parents
                if path.is_file() and path.suffix in TEXT_SUFFIXES and not hidden:
                    yield path
        for name in TEXT_FILES:
            if (self.root / name).is_file():
                yield self.root / name

    def check_table(self):
        cmake = self.root / "CMakeLists.txt"
        known = set()
        for room, knows in self.rooms.items():
            for other in sorted(knows - known):
                self.add(cmake, 1, "layering", f"room {room} knows {other}, which is not a room above it in the list: "
                         "rooms stand in an order in which each knows only earlier ones")
            known.add(room)
        for folder in sorted((self.root / "src").iterdir()):
            if folder.is_dir() and folder.name not in self.rooms:
                self.add(folder, 1, "layering", "a folder of src is a room: give it its leasehold_room line")
        readme = self.root / "src" / "README.md"
        if not readme.exists():
            return
        told = rooms_of_readme(self.root)
        for room in sorted(self.rooms.keys() | told.keys()):
            if told.get(room) != self.rooms.get(room):
                self.add(readme, 1, "map", f"room {room} knows {sorted(told.get(room, []))} here and "
                         f"{sorted(self.rooms.get(room, []))} in CMakeLists.txt; make them say the same")

    def check_cxx(self, path, folder):
        text = path.read_text()
        code = cxx_text.bare(text)
        relative = path.relative_to(self.root)
        room = relative.parts[1] if folder == "src" and len(relative.parts) > 2 else None
        functions, variables = cxx_text.outline(code)
        self.check_bans(path, code, room, folder)
        self.check_lengths(path, text, functions, folder)
        if path.suffix == ".h":
            self.check_header(path, text)
        if folder != "src":
            return
        self.check_includes(path, text, room)
        for variable in variables:
            if not cxx_text.is_constant(variable.text):
                self.add(path, variable.line, "global", f"'{variable.text}' is a mutable global; give it an owner")
        found = {variable.line for variable in variables}
        for variable in cxx_text.static_locals(code):
            if variable.line not in found:
                self.add(path, variable.line, "global", f"'{variable.text}' is mutable and static; give it an owner")

    def check_includes(self, path, text, room):
        relative = str(path.relative_to(self.root))
        for line, name, quoted in cxx_text.includes(text):
            if quoted:
                self.check_room_include(path, line, name, room)
                continue
            door = next((files for header, files in DOORS.items() if re.fullmatch(header, name)), None)
            if door:
                if not re.fullmatch(door, relative):
                    self.add(path, line, "door", f"<{name}> is included in {door} only; use what that file offers")
            elif name not in STANDARD and not SYSTEM.fullmatch(name):
                self.add(path, line, "door", f"<{name}> has no door; a third-party library gets one file that includes "
                         "it, named in DOORS of tests/tidy/layering.py")
            elif name in THREAD_HEADERS and room != "loop":
                self.add(path, line, "threads", f"<{name}> belongs to loop")
            elif name in CLOCK_HEADERS and room != "loop":
                self.add(path, line, "clock", f"<{name}> belongs to loop; times are base::MonoTime and base::Duration")
            elif room in PURE_ROOMS and (name in IO_HEADERS or SYSTEM.fullmatch(name)):
                self.add(path, line, "pure", f"<{name}> in {room}, which does no input or output and makes no system call")

    def check_room_include(self, path, line, name, room):
        if "/" not in name:
            self.add(path, line, "layering", f'"{name}" does not name its room; include paths start at src/')
            return
        other = name.split("/")[0]
        allowed = self.rooms.get(room, set()) | {room} if room else {"cli"}
        if other not in allowed:
            self.add(path, line, "layering", f'"{name}": {room or "main.cc"} may know '
                     f'{", ".join(sorted(allowed - {room})) or "no other room"} (CMakeLists.txt)')
        elif not (self.root / "src" / name).exists():
            self.add(path, line, "layering", f'"{name}" is not there')

    def check_bans(self, path, code, room, folder):
        code = cxx_text.without_preprocessor(code)
        for rule, pattern, rooms, remedy in BANS:
            if room in rooms or (folder != "src" and rule not in TEST_BANS):
                continue
            for match in re.finditer(pattern, code):
                line = code.count("\n", 0, match.start() + len(match[0]) - len(match[0].lstrip())) + 1
                if is_declaration(code, match):
                    continue
                self.add(path, line, rule, f"'{match[0].strip()}': {remedy}")

    def check_lengths(self, path, text, functions, folder):
        lines = text.count("\n")
        header = path.suffix == ".h"
        most, aim = (HEADER_LINES_MAX, HEADER_LINES_AIM) if header else (SOURCE_LINES_MAX, SOURCE_LINES_AIM)
        if lines > most:
            self.add(path, lines, "length", f"{lines} lines; at most {most}: split it by subject")
        elif lines > aim and folder == "src":
            self.long.append((lines, f"{path.relative_to(self.root)}: {lines} lines (aim: {aim})"))
        function_max = FUNCTION_LINES_MAX if folder == "src" else TEST_FUNCTION_LINES_MAX
        for function in functions:
            if function.lines > function_max:
                self.add(path, function.line, "length", f"{function.name} has {function.lines} lines; at most "
                         f"{function_max}: give its steps names")
            elif function.lines > FUNCTION_LINES_AIM and folder == "src":
                self.long.append((function.lines, f"{path.relative_to(self.root)}:{function.line}: {function.name} "
                                                  f"has {function.lines} lines (aim: {FUNCTION_LINES_AIM})"))

    def check_header(self, path, text):
        lines = text.split("\n")
        opening = 0
        while opening < len(lines) and lines[opening].startswith("//"):
            opening += 1
        if opening == 0 or len(" ".join(lines[:opening])) < 40:
            self.add(path, 1, "header", "opens with a comment paragraph: what it is, what not, who owns it, its invariant")
        elif lines[opening] != "#pragma once":
            self.add(path, opening + 1, "header", "'#pragma once' follows the opening paragraph")

    def check_words(self, path):
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            return
        relative = path.relative_to(self.root)
        for number, line in enumerate(text.split("\n"), 1):
            if UNFINISHED.search(line):
                self.add(path, number, "unfinished", "finish it, or file it; the code has no notes to do")
            if relative.parts[0] == "src" and path.suffix in (".cc", ".h") and STAND_IN.search(line):
                self.add(path, number, "unfinished", "what is not there is left out, not stood in for")
            if FOREIGN_PATH.search(line):
                self.add(path, number, "path", "names a folder of somebody's machine")
            if line != line.rstrip() and path.suffix not in (".txt", ".md", ""):
                self.add(path, number, "whitespace", "blanks at the end of the line")
        if text and not text.endswith("\n"):
            self.add(path, text.count("\n") + 1, "whitespace", "no newline at the end of the file")


def is_declaration(code, match):
    """A member function or variable that only bears a banned name: `MonoTime time(...)`, `Clock& clock(`."""
    before = code[:match.start()].rstrip(" ")
    word = re.search(r"([\w>&*]+)$", before)
    return bool(word) and word[1] not in ("return", "co_return", "else", "do", "case") and \
        "::" not in match[0] and match[0].rstrip().endswith("(")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=ROOT, type=pathlib.Path)
    parser.add_argument("--report", action="store_true", help="also what is longer than the style aims at")
    arguments = parser.parse_args()
    checker = Checker(arguments.root.resolve())
    findings = checker.run()
    if arguments.report:
        for _, line in sorted(checker.long, reverse=True):
            print(line)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
