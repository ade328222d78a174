"""The lineage: one path segment that names all attempts at the same training.

`<namespace>.<kind>.<name>`, `<namespace>.kfp.<pipeline>.<task>.<inputs-hash>`, or `local.<program>.<hash>`,
lower case. A replaced pod, a re-created Job of the same name and a re-run with the same inputs keep it, so
they resume; two ParallelFor iterations differ by their inputs. Iterations that get the same inputs share
one: give them the item as an input, or a `lineage` of their own.

Different origins never share a lineage. A part that cannot stand as it is gets its characters replaced,
and then a hash of the origin ends the lineage, after a `_`; so does one that would look like that.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from podferry.contract.errors import Problem
from podferry.contract.pod_owner import KFP, PodOwner

MAX_LINEAGE_LENGTH = 200
"""Characters: with a checkpoint's name and its hash it stays within one path component and key limits."""
MAX_PROGRAM_LENGTH = 60
HASH_DIGITS = 12
LOCAL = "local"
NOT_ALLOWED = re.compile(r"[^a-z0-9._-]")
NOT_ALLOWED_OR_DOT = re.compile(r"[^a-z0-9_-]")
HASHED = re.compile(rf".*_[0-9a-f]{{{HASH_DIGITS}}}")
PLAIN = re.compile(r"[a-z0-9_-][a-z0-9._-]*")
INTERPRETER = re.compile(
    r"(python|pypy)[0-9.]*|bash|sh|env|accelerate|torchrun|deepspeed|uv|poetry|run|launch"
)
SCRIPTS = (".py", ".sh")


def lineage_of(origin: PodOwner) -> str:
    """The lineage of a pod: at most 200 characters of `[a-z0-9._-]`."""
    identity, parts = _identity(origin), _readable(origin)
    text = ".".join(parts)
    if (
        parts == identity
        and len(text) <= MAX_LINEAGE_LENGTH
        and not HASHED.fullmatch(text)
        and not _reserved(origin)
    ):
        return text
    return f"{text[: MAX_LINEAGE_LENGTH - HASH_DIGITS - 1]}_{_hash(identity)}"


def local_lineage(command: Sequence[str]) -> str:
    """The lineage of a run outside Kubernetes: its program, and a hash of the whole command."""
    return f"{LOCAL}.{_dotless(_program(command).lower())[:MAX_PROGRAM_LENGTH]}.{_hash(command)}"


def lineage_problem(text: str) -> Problem | None:
    """Why a lineage that a user wrote cannot be one, or None where it can."""
    if len(text) > MAX_LINEAGE_LENGTH:
        measured, remedy = f"{len(text)} characters", f"Write at most {MAX_LINEAGE_LENGTH} characters"
        return Problem("the lineage is too long", measured, remedy)
    if PLAIN.fullmatch(text):
        return None
    remedy = (
        f"Write one path segment of a-z, 0-9, '.', '_' and '-' that does not start with '.': {_fix(text)}"
    )
    return Problem("the lineage is no plain path segment", repr(text), remedy)


def _is_step(origin: PodOwner) -> bool:
    return origin.kind == KFP and not origin.name


def _identity(origin: PodOwner) -> list[str]:
    """What tells this origin from all others."""
    if _is_step(origin):
        return [origin.namespace, KFP, origin.pipeline, origin.task, origin.inputs_hash]
    return [origin.namespace, origin.kind, origin.name]


def _readable(origin: PodOwner) -> list[str]:
    """The identity in the characters of a lineage. One part may hold dots, so its ends are unambiguous."""
    dotted = 3 if _is_step(origin) else 2
    return [(_slug if at == dotted else _dotless)(part) for at, part in enumerate(_identity(origin))]


def _reserved(origin: PodOwner) -> bool:
    """Whether its text could be that of a local run, or of a KFP step though it is none."""
    return origin.namespace == LOCAL or (origin.kind == KFP and not _is_step(origin))


def _slug(text: str) -> str:
    return NOT_ALLOWED.sub("-", text.lower()) or "-"


def _dotless(text: str) -> str:
    return NOT_ALLOWED_OR_DOT.sub("-", text.lower()) or "-"


def _fix(text: str) -> str:
    return _slug(text.strip()).lstrip(".")[:MAX_LINEAGE_LENGTH] or "run-1"


def _hash(parts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()[:HASH_DIGITS]


def _program(command: Sequence[str]) -> str:
    """What runs: the first script, else the first word that is no interpreter, launcher or option."""
    names = [PurePosixPath(word).name for word in command if not word.startswith("-")]
    scripts = [name for name in names if name.endswith(SCRIPTS)]
    own = [name for name in names if not INTERPRETER.fullmatch(name)]
    return next(iter(scripts or own or names), "run").removesuffix(".py").removesuffix(".sh")
