"""Runs the steps of a cache: the command `podferry cache VERB`, as the step's service account."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from podferry.components.log_tables import print_line
from podferry.components.parsers import refuse_invalid
from podferry.components.secret_dir import SECRET_DIR
from podferry.contract.errors import InvalidSpec, Problem

VERBS = ("warmup", "clear", "rmr", "delete")


@dataclass(frozen=True, slots=True)
class CacheVerb:
    """What a step does.

    Attributes:
        verb: `warmup`, `clear`, `rmr` or `delete`.
        cache, namespace: Name of the cache, and where its holders run.
        paths: Of `rmr`, one a line.
        node: Of `clear`: only the holder there; empty for all.
        empty: Of `clear`: holders stop.
        force: Also while pods read.
        timeout: Of `warmup`, in seconds.
        endpoint, region: Of the cache's source, for `rmr`.
    """

    verb: str
    cache: str
    namespace: str
    paths: str = ""
    node: str = ""
    empty: bool = False
    force: bool = False
    timeout: int = 3600
    endpoint: str = ""
    region: str = ""


def run_verb(step: CacheVerb, secret_dir: Path = SECRET_DIR) -> None:
    """Run the command; its output is the log of the step.

    Raises:
        InvalidSpec: Every input that is wrong.
        SystemExit: The command has failed; with its exit code.
    """
    if step.verb not in VERBS:
        raise InvalidSpec(Problem("verb: unknown", repr(step.verb), f"Write {', '.join(VERBS)}"))
    refuse_invalid(
        cache=step.cache,
        namespace=step.namespace,
        **({"paths": step.paths} if step.verb == "rmr" else {}),
        node=step.node,
        endpoint=step.endpoint,
        region=step.region,
    )
    run_command(
        ["cache", step.verb, step.cache, f"--namespace={step.namespace}", *_options(step, secret_dir)]
    )


def run_command(words: Sequence[str]) -> None:
    """Run podferry with these arguments; raises `SystemExit` with its exit code if it fails."""
    print_line(f"podferry {' '.join(words)}")
    environ = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    done = subprocess.run([sys.executable, "-m", "podferry", *words], env=environ, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def _options(step: CacheVerb, secret_dir: Path) -> Iterator[str]:
    match step.verb:
        case "warmup":
            yield f"--timeout={step.timeout}"
        case "clear":
            yield from (
                flag for flag in (f"--node={step.node}" * bool(step.node), "--empty" * step.empty) if flag
            )
        case "delete":
            yield "--missing-ok"  # a step that is retried
        case _:
            yield from ("--yes", "--missing-ok")
            named = {"endpoint": step.endpoint, "region": step.region}
            yield from (f"--{name}={value}" for name, value in named.items() if value)
            if secret_dir.is_dir():
                yield f"--secret-dir={secret_dir}"
    if step.force and step.verb != "warmup":
        yield "--force"
    if step.verb == "rmr":
        yield from ("--", *step.paths.splitlines())
