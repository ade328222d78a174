"""The entry of `podferry`. What runs in every pod is small and starts before the rest is loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

SMALL = {
    "wait": "podferry.sidecar.gate",
    "drain": "podferry.sidecar.drain",
    "checkpoint": "podferry.sidecar.mark",
}
"""Verbs that parse their own words: loading a library for that would take longer than they do."""

GET = ["dataset", "get"]
"""Parses its own words as well: what comes after it may take less time than a library takes to load."""

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the signal's number, as shells have it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    verb = words[0] if words else ""
    if verb in SMALL:
        module = SMALL[verb]
    elif words[:2] == GET:
        module, words = "podferry.cli.get", words[1:]
    elif verb == "agent" and not {"--worker", "--help"} & set(words):
        module = "podferry.cli.supervise"
    else:
        module, words = "podferry.cli.verbs", ["", *words]
    try:
        code: int = import_module(module).main(words[1:])
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
