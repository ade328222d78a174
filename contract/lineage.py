"""Computes the lineage: one path segment that names all attempts at the same training run.

`<namespace>.<kind>.<name>`, `<namespace>.kfp.<pipeline>.<task>.<inputs-hash>`, or `local.<program>.<hash>`,
lower case. A replaced pod, a re-created Job with the same name and a re-run with the same inputs keep it, so
they resume; two ParallelFor iterations differ by their inputs. Iterations with the same inputs share one:
give them the item as an input, or a `lineage` each.

The hash of a local run is that of its program (`podferry.contract.program`), its arguments, its working
directory and its datasets' URIs without their digests.

Different owners never share a lineage. If a part has characters that are not allowed, they are replaced and
the lineage ends with `_` and a hash of the owner; so does a lineage that already looks like that.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from podferry.contract.errors import Problem
from podferry.contract.hidden_secrets import hide_in_location
from podferry.contract.pod_owner import KFP, PodOwner
from podferry.contract.program import Program

MAX_LINEAGE_LENGTH = 200
"""Characters. With a checkpoint's name and hash it stays within the limits of a path component and a key."""
MAX_PROGRAM_LENGTH = 60
HASH_DIGITS = 12
LOCAL = "local"
NOT_ALLOWED = re.compile(r"[^a-z0-9._-]")
NOT_ALLOWED_OR_DOT = re.compile(r"[^a-z0-9_-]")
HASHED = re.compile(rf".*_[0-9a-f]{{{HASH_DIGITS}}}")
PLAIN = re.compile(r"[a-z0-9_-][a-z0-9._-]*")
FORMER_WRAPPERS = re.compile(
    r"(python|pypy)[0-9.]*|bash|sh|env|accelerate|torchrun|deepspeed|uv|poetry|run|launch"
)
FORMER_SCRIPTS = (".py", ".sh")
"""The rules by which podferry 0.1 named a program."""


def lineage_of(owner: PodOwner) -> str:
    """The lineage of a pod: at most 200 characters of `[a-z0-9._-]`."""
    identity, parts = _identity(owner), _readable(owner)
    text = ".".join(parts)
    readable = parts == identity and len(text) <= MAX_LINEAGE_LENGTH and not HASHED.fullmatch(text)
    if readable and not _reserved(owner):
        return text
    return f"{text[: MAX_LINEAGE_LENGTH - HASH_DIGITS - 1]}_{_hash(identity)}"


def local_lineage(program: Program, directory: str, datasets: Iterable[tuple[str, str]] = ()) -> str:
    """The lineage of a run outside Kubernetes: its program's name, and a hash of what distinguishes it.

    Args:
        program: What it runs.
        directory: The resolved working directory.
        datasets: Name and URI of each, without a digest.
    """
    identity = json.dumps([program.words, directory, sorted(datasets)])
    return f"{local_prefix(program.label)}{_hash([identity])}"


def former_local_lineage(command: Sequence[str]) -> str:
    """The lineage that podferry 0.1 gave to a command, in any directory and with any dataset."""
    names = [PurePosixPath(word).name for word in command if not word.startswith("-")]
    scripts = [name for name in names if name.endswith(FORMER_SCRIPTS)]
    own = [name for name in names if not FORMER_WRAPPERS.fullmatch(name)]
    label = next(iter(scripts or own or names), "run").removesuffix(".py").removesuffix(".sh")
    return f"{local_prefix(label)}{_hash(command)}"


def local_prefix(label: str) -> str:
    """What the lineages of all runs of a program outside Kubernetes begin with."""
    return f"{LOCAL}.{_dotless(label.lower())[:MAX_PROGRAM_LENGTH]}."


def lineage_problem(text: str) -> Problem | None:
    """Why a user's lineage is not valid, or None if it is."""
    if len(text) > MAX_LINEAGE_LENGTH:
        measured, remedy = f"{len(text)} characters", f"Write at most {MAX_LINEAGE_LENGTH} characters"
        return Problem("the lineage is too long", measured, remedy)
    if PLAIN.fullmatch(text):
        return None
    remedy = "Write one path segment of a-z, 0-9, '.', '_' and '-', not starting with '.'"
    shown = hide_in_location(text)  # it may be a URI, meant for another annotation
    return Problem("the lineage is not a plain path segment", repr(shown), f"{remedy}: {_sanitized(shown)}")


def _is_step(owner: PodOwner) -> bool:
    return owner.kind == KFP and not owner.name


def _identity(owner: PodOwner) -> list[str]:
    """What distinguishes this owner from all others."""
    if _is_step(owner):
        return [owner.namespace, KFP, owner.pipeline, owner.task, owner.inputs_hash]
    return [owner.namespace, owner.kind, owner.name]


def _readable(owner: PodOwner) -> list[str]:
    """The identity in allowed characters. Only one part may contain dots, so parts stay unambiguous."""
    dotted = 3 if _is_step(owner) else 2
    return [(_slug if at == dotted else _dotless)(part) for at, part in enumerate(_identity(owner))]


def _reserved(owner: PodOwner) -> bool:
    """Whether its lineage could be mistaken for that of a local run or of a KFP step."""
    return owner.namespace == LOCAL or (owner.kind == KFP and not _is_step(owner))


def _slug(text: str) -> str:
    return NOT_ALLOWED.sub("-", text.lower()) or "-"


def _dotless(text: str) -> str:
    return NOT_ALLOWED_OR_DOT.sub("-", text.lower()) or "-"


def _sanitized(text: str) -> str:
    return _slug(text.strip()).strip(".-")[:MAX_LINEAGE_LENGTH] or "run-1"


def _hash(parts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()[:HASH_DIGITS]
