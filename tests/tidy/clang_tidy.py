#!/usr/bin/env python3
"""Runs clang-tidy over src/ with the checks of .clang-tidy, a room at a time.

    python3 tests/tidy/clang_tidy.py [--build build] [--jobs N] [--deep] [room ...]

Most of what clang-tidy costs is the standard library's headers, once for every file. So the sources of
a room are put one after another into a single file, read once, and what is found is reported under the
name and line of the source it came from. (Text, not #include: the static analyzer looks into the main
file only.) Two sources that do not fit into one file, because both define a name of their own in an
anonymous namespace, go into different ones.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH_BYTES_MAX = 90_000   # about a third of the largest room: batches of a size share the cores evenly
# The static analyzer is most of what is left of the cost. Shallow is its own faster mode (it follows fewer and shorter
# paths and small callees only); --deep is its default, for a night.
SHALLOW = ["-Xclang", "-analyzer-config", "-Xclang", "mode=shallow"]
CHEAP_CHECK = "-*,misc-static-assert"   # clang-tidy wants one; compile errors are reported with any


def compile_flags(build):
    """room -> the compiler flags of its sources, without the ones about output."""
    flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if ROOT / "src" not in path.parents or path.parent.name in flags:
            continue
        words = shlex.split(entry["command"])
        while not re.search(r"(g\+\+|clang\+\+|c\+\+)[-0-9.]*$", words[0]):   # a launcher
            words.pop(0)
        kept = []
        skip = False
        for word in words[1:]:
            if skip or word == entry["file"]:
                skip = False
            elif word in ("-o", "-MF", "-MT"):
                skip = True
            elif word not in ("-c", "-MD", "-MMD") and not word.startswith("-W"):
                kept.append(word)
        flags[path.parent.name] = kept + ["-w"]   # warnings are the compiler's business
    return flags


class Batch:
    """Some sources of one room as one file."""

    def __init__(self, room, number, sources, folder):
        self.room = room
        self.sources = sources
        self.path = folder / f"{room}_{number}.cc"
        self.starts = []
        text = []
        for source in sources:
            self.starts.append(len(text) + 1)
            text += source.read_text().split("\n")
        self.path.write_text("\n".join(text) + "\n")

    def origin(self, line):
        index = max(i for i, start in enumerate(self.starts) if start <= line)
        return self.sources[index], line - self.starts[index] + 1

    def run(self, flags, *options):
        command = ["clang-tidy", "--quiet", f"--config-file={ROOT}/.clang-tidy", *options,
                   str(self.path), "--", *flags]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        return done.returncode, self.translate(done.stdout)

    def translate(self, output):
        def place(match):
            source, line = self.origin(int(match[1]))
            return f"{source.relative_to(ROOT)}:{line}:"
        output = re.sub(re.escape(str(self.path)) + r":(\d+):", place, output)
        return output.replace(str(ROOT) + "/", "")


def misfits(batch, output):
    """The sources named by compile errors, the later one of two that collide."""
    found = re.findall(r"^(src/\S+?):\d+:\d+: error: .*\[clang-diagnostic-error\]$", output, re.M)
    return [source for source in batch.sources if str(source.relative_to(ROOT)) in found]


def split(sources):
    """In order, into batches of about the same size, none much above BATCH_BYTES_MAX."""
    total = sum(source.stat().st_size for source in sources)
    count = max(1, round(total / BATCH_BYTES_MAX))
    batches = [[] for _ in range(count)]
    sizes = [0] * count
    for source in sorted(sources, key=lambda source: -source.stat().st_size):
        smallest = sizes.index(min(sizes))
        batches[smallest].append(source)
        sizes[smallest] += source.stat().st_size
    return [sorted(batch) for batch in batches]


def check(room, number, sources, flags, folder):
    """Checks one list of sources: (ok, output)."""
    batch = Batch(room, number, sources, folder)
    if len(sources) > 1:
        failed, output = batch.run(flags, f"--checks={CHEAP_CHECK}")
        apart = misfits(batch, output)[:1] if failed else []
        if apart:
            rest = [source for source in sources if source not in apart]
            first = check(room, number, rest, flags, folder)
            second = check(room, f"{number}_{apart[0].stem}", apart, flags, folder)
            return first[0] and second[0], first[1] + second[1]
    failed, output = batch.run(flags)
    return failed == 0, output


def unique(output, seen):
    """A finding in a header is found with every file that includes it: once is enough."""
    kept = []
    for block in re.split(r"(?m)^(?=\S+:\d+:\d+: (?:error|warning): )", output):
        if block not in seen:
            seen.add(block)
            kept.append(block)
    return "".join(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path,
                        help="folder with compile_commands.json")
    parser.add_argument("--jobs", default=len(os.sched_getaffinity(0)), type=int)
    parser.add_argument("rooms", nargs="*", help="only these")
    parser.add_argument("--deep", action="store_true", help="let the static analyzer take its time")
    arguments = parser.parse_args()
    flags = compile_flags(arguments.build)
    if not arguments.deep:
        flags = {room: words + SHALLOW for room, words in flags.items()}
    folder = arguments.build.resolve() / "tidy"
    folder.mkdir(exist_ok=True)
    tasks = []
    for room in arguments.rooms or sorted(flags):
        where = ROOT / "src" if room == "src" else ROOT / "src" / room
        for number, sources in enumerate(split(sorted(where.glob("*.cc")))):
            tasks.append((room, number, sources))
    tasks.sort(key=lambda task: -sum(source.stat().st_size for source in task[2]))
    began = time.monotonic()
    seen = set()
    bad = False
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {pool.submit(check, room, number, sources, flags[room], folder): (room, sources)
                for room, number, sources in tasks}
        for run in concurrent.futures.as_completed(runs):
            ok, found = run.result()
            room, sources = runs[run]
            print(f"clang-tidy: {room}: {len(sources)} files {'ok' if ok else 'FAILED'}"
                  f" ({time.monotonic() - began:.0f} s)", flush=True)
            if not ok:
                bad = True
                print(unique(found, seen), end="", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
