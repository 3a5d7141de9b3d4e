"""Waiting on a condition with a deadline."""

import time

# How often a condition is looked at: short beside every limit that tests measure.
LOOK_EVERY = 0.004


def wait_for(condition, seconds, what):
    """Returns the condition's first true value; fails the test with `what` after `seconds`.

    `what` may be a callable, asked only in the end: for what the world looked like then.
    """
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            text = what() if callable(what) else what
            raise AssertionError(f"not within {seconds:.2f} s: {text}")
        time.sleep(LOOK_EVERY)


def watch_for(condition, seconds, what):
    """Looks for `seconds` whether `condition` stays true: for what must NOT happen meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition(), what() if callable(what) else what
        time.sleep(LOOK_EVERY)
