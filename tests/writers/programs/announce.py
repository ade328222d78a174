"""Announces saved checkpoints, and pauses, to the harness."""

import contextlib
import itertools
import sys
from pathlib import Path

ROOT, DONE = Path(sys.argv[1]), Path(sys.argv[2])
COUNTER = itertools.count()
CARRY_ON = (DONE / "carry-on").exists()


def saved(name):
    """The checkpoint of that name is complete now."""
    (DONE / f"{next(COUNTER)}@{name}").mkdir()


@contextlib.contextmanager
def saving(name):
    """Save the checkpoint of that name; a trainer that carries on after an error goes on to the next one."""
    try:
        yield
    except Exception:
        if not CARRY_ON:
            raise
        next(COUNTER)
    else:
        saved(name)


def pause(seconds):
    """Compute for so long; no time passes but for those who watch."""
    (DONE / f"pause{next(COUNTER_OF_PAUSES)}@{seconds}").mkdir()


COUNTER_OF_PAUSES = itertools.count()
