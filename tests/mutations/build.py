"""Builds the simulator from the objects of a build folder and a few sources of one's own.

Nothing is configured twice: flags come from compile_commands.json, the list of objects and libraries from Ninja's own
link command. Only the given sources are compiled, with little optimisation (`QUICK`): what counts is how soon the answer
is there. A mutated header (src/lease/permit.h, say) also has every source compiled again that includes it.
"""

import json
import pathlib
import shlex
import subprocess

from mutations.mutant import ROOT

TARGET = "tests/simulate"
# -O1: a run costs about as much again as at -O3, compiling half as much. Warnings are not what is asked here.
QUICK = ("-O1", "-g0", "-w")
DROPPED = ("-O", "-g", "-W", "-Werror", "-pedantic", "-DNDEBUG")
COMPILE_SECONDS_MAX = 300


class DoesNotCompile(Exception):
    """What the compiler or the linker said."""


class Builder:
    def __init__(self, build):
        self._build = pathlib.Path(build)
        compiled = json.loads((self._build / "compile_commands.json").read_text())
        self._commands = {}      # source -> [(words, object)]: a source may belong to several targets
        for entry in compiled:
            words = shlex.split(entry["command"])
            self._commands.setdefault(entry["file"], []).append((words, words[words.index("-o") + 1]))
        self._link = self._link_words()
        self._includers = None   # header -> sources of the simulator, read when first needed

    def _ninja(self, *arguments):
        done = subprocess.run(["ninja", "-C", str(self._build), *arguments], check=True, capture_output=True, text=True)
        return done.stdout

    def _link_words(self):
        # ": && c++ ... objects ... libraries && :"
        last = self._ninja("-t", "commands", TARGET).rstrip().split("\n")[-1]
        words = shlex.split(last)
        return words[words.index("&&") + 1:len(words) - 1 - words[::-1].index("&&")]

    def _sources_with(self, header):
        """Sources whose objects the simulator is made of and that read `header`, by Ninja's log of dependencies."""
        if self._includers is None:
            self._includers = {}
            known = {target: source for source, uses in self._commands.items() for _, target in uses}
            target = None
            for line in self._ninja("-t", "deps").split("\n"):
                if line and not line.startswith(" "):
                    target = line.split(":")[0]
                elif line.strip() and target in known:
                    name = line.strip()
                    if name.endswith(".h"):
                        path = str((self._build / name).resolve())
                        self._includers.setdefault(path, set()).add((known[target], target))
        mine = set(word for word in self._link if word.endswith(".o"))
        rooms = {pathlib.Path(word).stem.removeprefix("lib") for word in self._link if word.endswith(".a")}
        return sorted(source for source, target in self._includers.get(str(ROOT / header), set())
                      if target in mine or pathlib.Path(target).parts[1].removesuffix(".dir") in rooms)

    def build(self, sources, into):
        """sources: file -> text. Returns the program. Raises DoesNotCompile."""
        into = pathlib.Path(into)
        overlay = into / "overlay"
        compile_these = set()
        for file, text in sources.items():
            copy = overlay / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)
            if file.endswith(".h"):
                compile_these.update(self._sources_with(file))
            else:
                compile_these.add(str(ROOT / file))
        objects = {}   # what it replaces -> ours
        for number, source in enumerate(sorted(compile_these)):
            own = into / f"{number}_{pathlib.Path(source).stem}.o"
            objects[self._compile(source, overlay, own)] = own
        return self._linked(objects, into / "simulate")

    def _compile(self, source, overlay, own):
        if source not in self._commands:
            raise DoesNotCompile(f"{source} is not a source of this build")
        uses = self._commands[source]
        mine = [use for use in uses if use[1] in self._link]
        words, target = (mine or uses)[0]
        kept = [word for word in words if not word.startswith(DROPPED)]
        if kept[0].endswith("ccache"):   # a mutant is not worth a place in the cache
            kept = kept[1:]
        copy = overlay / pathlib.Path(source).relative_to(ROOT)
        kept[kept.index("-o") + 1] = str(own)
        kept[kept.index("-c") + 1] = str(copy if copy.exists() else source)
        first = [f"-I{overlay / folder}" for folder in ("src", "tests")]
        self._run([kept[0], *first, *kept[1:], *QUICK], f"{source} does not compile")
        return target

    def _linked(self, objects, program):
        words = [str(objects.pop(word)) if word in objects else word for word in self._link]
        words[words.index("-o") + 1] = str(program)
        # What is left stands in archives: an object before them keeps the archive's own from being taken.
        first = next(i for i, word in enumerate(words) if word.endswith(".o"))
        words[first:first] = [str(own) for own in objects.values()]
        self._run(words, "the simulator does not link")
        return program

    def _run(self, words, what):
        done = subprocess.run(words, cwd=self._build, capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX)
        if done.returncode != 0:
            raise DoesNotCompile(f"{what}:\n{done.stderr[-4000:]}")
