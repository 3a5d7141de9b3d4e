"""A mutant: one deliberate fault, written into a copy of the real source, and what must notice it."""

import pathlib
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Stale(Exception):
    """The table no longer fits the source: a sentence that says where, and what to do."""


@dataclass(frozen=True)
class Edit:
    """In `file` (from the checkout's root) the text `old`, found exactly once, becomes `new`."""

    file: str
    old: str
    new: str

    def applied(self, text):
        found = text.count(self.old)
        if found != 1:
            raise Stale(f"{self.file}: the text to replace is found {found} times, and must be there exactly once; "
                        f"bring the table up to date with the source. The text is:\n{self.old}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Mutant:
    """`breaks`: the sentence of the design that no longer holds. `rules`: beginnings of the rules of the checkers, of
    which one must be the first to be seen broken. Within how many seeds stands in limits.txt."""

    name: str
    breaks: str
    edits: tuple
    rules: tuple

    def sources(self, root=ROOT):
        """file -> its text with all edits made. Raises Stale."""
        texts = {}
        for edit in self.edits:
            text = texts.get(edit.file)
            if text is None:
                text = (root / edit.file).read_text()
            texts[edit.file] = edit.applied(text)
        return texts


@dataclass(frozen=True)
class Limit:
    """A mutant must be caught within `seeds`; the worst of a few streams of seeds took `measured`."""

    seeds: int
    measured: int


LIMITS = pathlib.Path(__file__).with_name("limits.txt")
LIMITS_HEAD = """\
# Within how many seeds each mutant must be caught, and after how many it was in the worst of the streams that were
# measured. Written by `python3 tests/mutations/mutants.py --measure`, reviewed as a diff: a number that grows says that
# the simulator's worlds have become kinder to that fault.
# limit measured mutant
"""


def read_limits(path=LIMITS):
    """name -> Limit."""
    limits = {}
    for line in path.read_text().split("\n") if path.exists() else ():
        if line and not line.startswith("#"):
            seeds, measured, name = line.split(maxsplit=2)
            limits[name] = Limit(int(seeds), int(measured))
    return limits


def write_limits(limits, path=LIMITS):
    lines = [f"{limit.seeds:7} {limit.measured:8} {name}\n" for name, limit in limits.items()]
    path.write_text(LIMITS_HEAD + "".join(lines))
