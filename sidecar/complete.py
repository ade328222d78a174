"""Which files form a checkpoint, and when it is whole. Pure rules over names.

A checkpoint is what lies under one name at the top of the checkpoint directory: a directory with all in it,
or the files that share a stem (`epoch-3.pdparams` and `epoch-3.pdopt`), with the pointer that names it. It
is whole when

* none of its names says that it is unfinished,
* what its writer leaves last is there,
* every file has been quiet for a while after its last close, and
* every file whose format can tell says that it is whole (`podferry.sidecar.structure`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from podferry.contract.commit import HASH_DIGITS
from podferry.contract.names import name_problem
from podferry.sidecar.pointers import named
from podferry.sidecar.snapshot import Identity, Seen

UNFINISHED: Mapping[str, str] = {
    "*.tmp": "torch DCP's .metadata.tmp, and the usual habit of writing aside and renaming",
    "*.tmp.*": "Lightning and TensorFlow habits: a random suffix after .tmp",
    "*.partial": "download and copy tools",
    "*.part": "download and copy tools",
    "*.incomplete": "huggingface_hub",
    "*.orbax-checkpoint-tmp*": "Orbax renames the directory at the end",
    "*.tempstate*": "TensorFlow's Saver: a bundle before it is renamed",
    ".tmp*": "Rust's tempfile: safetensors' sibling temporary (ran: 0.8.0 writes .tmpqowx2b)",
    ".*": "hidden at the top: editors, copy tools",
    "tmp*": "tempfile's names, at the top only",
    "*_temp": "TensorFlow's shards before they are merged (functional_saver.py), at the top only",
}
"""Names of unfinished files and directories, each with who uses it."""

AT_THE_TOP_ONLY = frozenset({".*", "tmp*", "*_temp"})
NO_TEXTS: Mapping[str, str] = MappingProxyType({})
TRAINER_DIRECTORY = re.compile(r"checkpoint-\d+")
TRAINER_SIGNS = frozenset({"training_args.bin", "optimizer.pt", "optimizer.bin", "scheduler.pt"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint as it lies in the directory.

    Attributes:
        name: The directory's name or the files' common stem.
        files: Relative names with their identities.
    """

    name: str
    files: tuple[tuple[str, Identity], ...]

    @property
    def bytes(self) -> int:
        """Sum of the sizes."""
        return sum(identity.size for _, identity in self.files)

    def within(self, other: Candidate | None) -> bool:
        """Whether every file of this one is in `other` as it is.

        A checkpoint that lost files is not a new version of itself: it is being removed, or was thinned out.
        """
        return other is not None and set(self.files) <= set(other.files)


def candidate_name(name: str) -> str:
    """The checkpoint that a file belongs to, by its name relative to the checkpoint directory."""
    top, slash, _ = name.partition("/")
    return top if slash else Path(top).stem


def unfinished(name: str) -> bool:
    """Whether a relative name says of itself that it is not done."""
    top, *rest = name.split("/")
    below = [pattern for pattern in UNFINISHED if pattern not in AT_THE_TOP_ONLY]
    return _matches(top, UNFINISHED) or any(_matches(part, below) for part in rest)


def _matches(part: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(part, pattern) for pattern in patterns)


def candidates(files: Mapping[str, Identity], texts: Mapping[str, str] = NO_TEXTS) -> dict[str, Candidate]:
    """The checkpoints that files form, by name. Unfinished names at the top are not part of any.

    Args:
        files: What lies in the directory.
        texts: What stands in the pointers among them: each belongs to the checkpoint that it names.
    """
    lying = [name for name in sorted(files) if not _matches(name.partition("/")[0], UNFINISHED)]
    others = {candidate_name(name) for name in lying if name not in texts}
    owner = {name: named(text, others) for name, text in texts.items()}
    groups: dict[str, list[tuple[str, Identity]]] = {}
    for name in lying:
        groups.setdefault(owner.get(name) or candidate_name(name), []).append((name, files[name]))
    return {name: Candidate(name, tuple(held)) for name, held in groups.items()}


def unready(candidate: Candidate) -> str | None:
    """Why a candidate cannot be whole by the names that it has, None where it may be."""
    names = dict(candidate.files)
    for name in names:
        if unfinished(name):
            return f"{name} is named like an unfinished file"
        problem = name_problem(f"{candidate.name}-{'0' * HASH_DIGITS}/{name}")
        if problem is not None:
            return f"{name!a} cannot be committed: {problem.what}"
    return _without_trainer_state(candidate.name, names) or _without_metadata(names)


def _without_trainer_state(name: str, names: Mapping[str, Identity]) -> str | None:
    """Hugging Face's Trainer writes in place, `trainer_state.json` last, long pauses before it.

    Source: transformers, `trainer.py` (`_save_checkpoint`).
    """
    state = f"{name}/trainer_state.json"
    if TRAINER_DIRECTORY.fullmatch(name) and state not in names:
        sign = next((sign for sign in sorted(TRAINER_SIGNS) if f"{name}/{sign}" in names), None)
        return f"{sign} is there, trainer_state.json is not yet" if sign else None
    return None


def _without_metadata(names: Mapping[str, Identity]) -> str | None:
    """DCP of torch moves `.metadata` in when every shard is written; an overwrite leaves the old one.

    Source: torch/distributed/checkpoint/filesystem.py (`finish`). Without collectives each rank has its own,
    `__<rank>.metadata`.
    """
    for folder in sorted({name.rpartition("/")[0] for name in names if name.endswith(".distcp")}):
        here = {name: seen for name, seen in names.items() if name.rpartition("/")[0] == folder}
        shards = max(seen.mtime_ns for name, seen in here.items() if name.endswith(".distcp"))
        marks = [seen.mtime_ns for name, seen in here.items() if name.endswith(".metadata")]
        if not marks:
            return f"{folder} has shards and no .metadata yet"
        if max(marks) < shards:
            return f"the .metadata of {folder} is older than its shards"
    return None


def quiet_at(files: Iterable[Seen], settle: float, settle_unseen: float) -> float:
    """When the last of the files will have been quiet long enough, on the clock of `Seen.since`."""
    return max(seen.since + (settle if seen.closed else settle_unseen) for seen in files)
