"""How the demo talks: plain sentences, coloured where there is a terminal."""

import os
import sys
import textwrap

WIDTH = 92
_COLOURED = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def paint(text, code):
    return f"\x1b[{code}m{text}\x1b[0m" if _COLOURED else text


def bold(text):
    return paint(text, "1")


def dim(text):
    return paint(text, "2")


def green(text):
    return paint(text, "32")


def red(text):
    return paint(text, "31")


def say(text=""):
    print(text, flush=True)


def heading(text):
    say()
    say(bold(text))


def paragraph(text):
    for line in textwrap.wrap(" ".join(text.split()), WIDTH - 2, break_on_hyphens=False):
        say("  " + line)


def moment(seconds, text):
    """One line of a timeline; `seconds` counts from what was done."""
    say(dim(f"  {seconds:+8.3f} s  ") + text)


def figure(text):
    say("  " + green("→ ") + bold(text))


def milliseconds(seconds):
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def picture(stage, how_often):
    """The flow, with the real addresses."""
    first, second = stage.sidecars
    one, two = stage.applications
    say(f"""
  client ─┬─► {bold('S1')}  gate {first.gate:<16} ─► {one.name}  {one.address}
          └─► {bold('S2')}  gate {second.gate:<16} ─► {two.name}  {two.address}
               └─ one lease, "app", TTL 2 s, in {stage.directory}/store
""")
    paragraph(f"""Each application is `python3 -m http.server`, started as anybody would: it knows
        nothing of leases. Each sidecar (`leasehold run`) lets traffic through only while it holds
        the lease. {how_often}""")
