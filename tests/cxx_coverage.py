#!/usr/bin/env python3
"""What the unit tests reach of the parts that a lease's safety rests on, and whether that is enough.

    python3 tests/cxx_coverage.py --build build-coverage [--jobs N]

Builds and runs the unit tests of those rooms in a build folder that was configured with --coverage, lets gcovr count,
writes coverage/index.html, coverage.txt and coverage.json there, and prints a table. Exit code 1 where an area has fewer
than LINES_MIN of its lines or BRANCHES_MIN of its branches, a file fewer than FILE_LINES_MIN of its lines, or a test
failed; each such file is named with the lines that nothing reached. The simulator and the fuzz targets are not counted
in: they come by almost everywhere, and judge the whole, not the line.

Not counted: branches that only an exception takes (gcovr --exclude-throw-branches: the compiler adds one to every call
that may run out of memory, on which the program ends by design), those of lines without code
(--exclude-unreachable-branches), and the failing side of a CHECK, which only a bug can take.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[1]
AREAS = {
    "lease": r"src/lease/",
    "proto": r"src/proto/",
    "gate core": r"src/gate/(gate_core|hold_queue|peer_route|admission)[a-z_]*\.(cc|h)",
}
TESTS = ("test_lease", "test_proto", "test_gate")
# Where what was built for them lies. Whatever else the build folder has may be of older sources.
OBJECTS = ("CMakeFiles/room_lease.dir", "CMakeFiles/room_proto.dir", "CMakeFiles/room_gate.dir",
           *(f"tests/CMakeFiles/{test}.dir" for test in TESTS))
LINES_MIN = 90.0     # of an area, per cent
BRANCHES_MIN = 80.0
FILE_LINES_MIN = 80.0   # one well tested file does not make up for one that is not
CHECK_BRANCH = r"\s*CHECK\(.*"


@dataclass
class Count:
    """Lines and branches of a file or an area: reached, all, and the lines that were not reached."""
    lines: list = field(default_factory=lambda: [0, 0])
    branches: list = field(default_factory=lambda: [0, 0])
    missed: list = field(default_factory=list)
    half: list = field(default_factory=list)   # reached, but not with every branch

    def add(self, line):
        if line.get("gcovr/noncode"):
            return
        taken = [branch["count"] > 0 for branch in line["branches"]]
        self.lines[0] += line["count"] > 0
        self.lines[1] += 1
        self.branches[0] += sum(taken)
        self.branches[1] += len(taken)
        if line["count"] == 0:
            self.missed.append(line["line_number"])
        elif not all(taken):
            self.half.append(line["line_number"])

    def __iadd__(self, other):
        for mine, theirs in ((self.lines, other.lines), (self.branches, other.branches)):
            mine[0] += theirs[0]
            mine[1] += theirs[1]
        return self


def percent(pair):
    return 100.0 * pair[0] / pair[1] if pair[1] else 100.0


def ranges(numbers):
    """[1, 2, 3, 7] as "1-3, 7"."""
    runs = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def count_files(report):
    """path -> Count, of gcovr's JSON."""
    counts = {}
    for entry in report["files"]:
        count = counts.setdefault(entry["file"], Count())
        for line in entry["lines"]:
            count.add(line)
    return counts


def areas_of(counts):
    """area -> {path: Count}."""
    return {area: {path: count for path, count in sorted(counts.items()) if re.match(pattern, path)}
            for area, pattern in AREAS.items()}


def faults_of(area, files):
    """Why this area is not enough; empty if it is. The worst files come first, with their lines."""
    if not files:
        return [f"{area}: no file of it was compiled into a test"]
    total = Count()
    for count in files.values():
        total += count
    faults = []
    for what, found, least in (("lines", percent(total.lines), LINES_MIN),
                               ("branches", percent(total.branches), BRANCHES_MIN)):
        if found >= least:
            continue
        faults.append(f"{area}: {found:.1f} % of its {what} are reached; at least {least:.0f} %")
        key = (lambda item: percent(item[1].lines)) if what == "lines" else (lambda item: percent(item[1].branches))
        for path, count in sorted(files.items(), key=key):
            if key((path, count)) < least:
                faults.append(place(path, count, what))
    for path, count in files.items():
        if percent(count.lines) < FILE_LINES_MIN:
            faults.append(f"{path}: {percent(count.lines):.1f} % of its lines are reached; at least {FILE_LINES_MIN:.0f} %")
            faults.append(place(path, count, "lines"))
    return faults


def place(path, count, what):
    numbers = count.missed if what == "lines" else sorted(count.missed + count.half)
    where = "not reached" if what == "lines" else "not reached in full"
    return f"  {path}: lines {where}: {ranges(numbers)}"


def table(areas):
    rows = [f"{'':44}{'lines':>18}{'branches':>18}"]
    for area, files in areas.items():
        total = Count()
        for path, count in files.items():
            total += count
            rows.append(row("  " + path, count))
        rows.append(row(f"{area}: together", total))
    return "\n".join(rows)


def row(name, count):
    def cell(pair):
        return f"{pair[0]}/{pair[1]} {percent(pair):5.1f} %"
    return f"{name:44}{cell(count.lines):>18}{cell(count.branches):>18}"


def run_tests(build, jobs):
    """True if they all passed. Old counts are removed: what was reached last week does not count."""
    subprocess.run(["cmake", "--build", build, "--parallel", str(jobs), "--target", *TESTS], check=True)
    for old in build.rglob("*.gcda"):
        old.unlink()
    return subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", "--parallel", str(jobs), "--tests-regex",
                           f"^({'|'.join(TESTS)})$"], stdin=subprocess.DEVNULL, check=False,
                          env=dict(os.environ, GTEST_BRIEF="1")).returncode == 0


def run_gcovr(build, jobs):
    pages = build / "coverage"
    pages.mkdir(exist_ok=True)
    filters = [word for pattern in AREAS.values() for word in ("--filter", pattern)]
    subprocess.run(["gcovr", "--root", ROOT, "--object-directory", build, *filters, "--exclude-throw-branches",
                    "--exclude-unreachable-branches", "--exclude-branches-by-pattern", CHECK_BRANCH,
                    "-j", str(jobs), "--json", build / "coverage.json", "--txt", build / "coverage.txt",
                    "--html-details", pages / "index.html", *(build / folder for folder in OBJECTS)], cwd=ROOT, check=True, stdin=subprocess.DEVNULL)
    return json.loads((build / "coverage.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=ROOT / "build-coverage", type=pathlib.Path)
    parser.add_argument("--jobs", default=len(os.sched_getaffinity(0)), type=int)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    well = run_tests(build, arguments.jobs)
    areas = areas_of(count_files(run_gcovr(build, arguments.jobs)))
    print(table(areas))
    print(f"pages: {build / 'coverage' / 'index.html'}")
    faults = [fault for area, files in areas.items() for fault in faults_of(area, files)]
    if not well:
        faults.append("a test failed (above): what it would have reached is not counted")
    for fault in faults:
        print(f"coverage: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
