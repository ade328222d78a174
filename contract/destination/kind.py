"""What a checkpoint is made of, by its files' names and sizes: a state, extras, documents, or a record. Pure.

Trainers write counters, metrics, plots and configurations next to their checkpoints. Each is uploaded like a
checkpoint, but nobody can resume from it. So wherever the newest checkpoint is chosen, those of the lineage's
*main kind* count: the first kind below that it has. XGBoost's `model_10.json` and LightGBM's `model.txt` are
documents, and whole checkpoints of lineages that have no state. A small `q_table` is an extra next to
`model_10.pt`, and a checkpoint where there is nothing better.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import repeat
from posixpath import splitext
from typing import Protocol, TypeVar

from podferry.contract.destination.series import NUMBER, words_of


class Kind(StrEnum):
    """What a checkpoint is made of, the most telling first."""

    STATE = "state"
    """At least one file that may be a training state: whatever is none of the others."""
    EXTRA = "extra"
    """Small files and databases next to a state. Alone they may be one."""
    DOCUMENT = "document"
    """Text only, which may be an entire model."""
    LATE = "late"
    """A state, extra or document that is older than a commit with a lower number: a copy of an old save."""
    RECORD = "record"
    """What a run leaves behind for people: measurements, settings, logs, pictures, code."""


class HasKind(Protocol):
    """A checkpoint."""

    @property
    def kind(self) -> Kind:
        """What it is made of."""


T = TypeVar("T", bound=HasKind)

DOCUMENTS = frozenset({".json", ".txt", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".xml"})
RECORDS = frozenset(
    {
        *(".log", ".out", ".err", ".jsonl", ".ndjson", ".csv", ".tsv", ".xlsx", ".wandb", ".prof"),
        *(".md", ".rst", ".html", ".htm", ".docx"),
        *(".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".svg", ".pdf", ".eps", ".tex"),
        *(".wav", ".mp3", ".flac", ".ogg", ".mp4", ".avi", ".mov", ".mkv", ".webm"),
        *(".py", ".sh", ".ipynb", ".patch", ".diff"),
    }
)
NAMED = DOCUMENTS | {"", ".npy", ".npz", ".pkl", ".pickle", ".pt", ".pth"}
"""Formats of models and of anything else, such as `losses.npy`: the name decides."""
DATABASES = frozenset({".db", ".sqlite", ".sqlite3", ".db-wal", ".db-shm", ".db-journal"})
"""Of trials and trackers: they grow, so they are as large as a state."""
PROCESSES = frozenset({".pid", ".lock"})
SMALL_BYTES = 4096
"""A file up to this size is no model next to a larger one, unless its name says so."""
MODELS = frozenset(
    {
        *("model", "models", "net", "network", "weights", "params", "state", "states", "checkpoint"),
        *("checkpoints", "ckpt", "ckpts", "snapshot", "policy", "agent", "actor", "generator"),
    }
)
"""Words that people name a state after, however small it is."""
MARKERS = frozenset({"best", "last", "latest", "final"})
COUNTERS = frozenset(
    {"epoch", "epochs", "step", "steps", "iter", "iteration", "iterations", "batch", "episode"}
)
COUNTED = COUNTERS | MARKERS | {"global", "current", "next", "done", "completed", "num", "number", "count"}
"""Words of a file that holds a number: `last_step`."""
COMPRESSED = frozenset({".gz", ".bz2", ".xz", ".zst"})
EVENTS = ".tfevents."
"""In the names of TensorBoard's files."""
RECORDED = frozenset(
    {
        *("loss", "losses", "metric", "metrics", "history", "log", "logs", "stats", "statistics", "result"),
        *("results", "reward", "rewards", "returns", "score", "scores", "acc", "accuracy", "accuracies"),
        *("curve", "curves", "eval", "evals", "evaluation", "evaluations", "report", "summary", "progress"),
        *("plot", "plots", "figure", "figures", "samples", "predictions", "preds", "timings", "confusion"),
        *("config", "cfg", "args", "arguments", "hparams", "hyperparameters", "settings"),
    }
)
QUALIFIERS = frozenset(
    {
        *("train", "training", "val", "valid", "validation", "test", "epoch", "epochs", "step", "steps"),
        *("iter", "iteration", "iterations", "batch", "episode", "episodes", "run", "mean", "avg", "matrix"),
        *("all", "lr", "per", "and", "of", "learning"),
    }
)
"""Words that say more about a recorded one: `train_loss`. Not `best`: that is how people name weights."""


def kind_of_file(name: str, size: int = SMALL_BYTES + 1) -> Kind:
    """What one file is, by its name relative to the checkpoint directory and its size in bytes."""
    directory, _, base = name.lower().rpartition("/")
    stem, suffix = splitext(base)
    if suffix in COMPRESSED and splitext(stem)[1]:
        stem, suffix = splitext(stem)
    if suffix in RECORDS or EVENTS in base or (suffix in NAMED and _is_named_as_record(stem)):
        return Kind.RECORD
    small = size <= SMALL_BYTES and not directory and NUMBER.search(stem) is None
    if suffix in PROCESSES or (small and _is_counter(stem)):
        return Kind.RECORD
    if suffix in DOCUMENTS:
        return Kind.DOCUMENT
    return Kind.EXTRA if suffix in DATABASES or (small and not _is_named_as_model(stem)) else Kind.STATE


def _is_named_as_record(stem: str) -> bool:
    """`val_loss` is measured, `val_loss=0.30` is what people name weights."""
    words = set(words_of(stem))
    return bool(words & RECORDED) and words <= RECORDED | QUALIFIERS and not re.search(r"\d\.\d", stem)


def _is_counter(stem: str) -> bool:
    """`last_epoch`, a few bytes; weights of that name are larger."""
    words = set(words_of(stem))
    return bool(words & COUNTERS) and words <= COUNTED


def _is_named_as_model(stem: str) -> bool:
    words = set(words_of(stem))
    return bool(words & MODELS) or (bool(words) and words <= MARKERS)


def kind_of(names: Iterable[str], sizes: Iterable[int] | None = None) -> Kind:
    """What files with these names are together: one state among them decides.

    Args:
        names: Relative to the checkpoint directory.
        sizes: In bytes, in the same order; None if they do not matter.
    """
    found = set[Kind]()
    for name, size in zip(names, repeat(SMALL_BYTES + 1) if sizes is None else sizes, strict=False):
        found.add(kind_of_file(name, size))
        if Kind.STATE in found:  # the first file of most checkpoints, which may have thousands
            break
    return main_kind(found)


def main_kind(kinds: Iterable[Kind]) -> Kind:
    """The first of all kinds that is among these; `STATE` if there is none."""
    found = set(kinds)
    return next((kind for kind in Kind if kind in found), Kind.STATE)


def of_main_kind(checkpoints: Iterable[T]) -> list[T]:
    """Those of the main kind, in the same order."""
    found = list(checkpoints)
    main = main_kind(one.kind for one in found)
    return [one for one in found if one.kind is main]


def by_kind(checkpoints: Sequence[T]) -> list[list[T]]:
    """The checkpoints of each kind that occurs, in the same order."""
    found = ([one for one in checkpoints if one.kind is kind] for kind in Kind)
    return [same for same in found if same]
