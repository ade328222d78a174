"""What a checkpoint is made of, by its files' names: a state, documents, or a record of the run. Pure.

Trainers write metrics, plots and configurations next to their checkpoints. Each is uploaded like a
checkpoint, but nobody can resume from it. So wherever the newest checkpoint is chosen, those of the lineage's
*main kind* count: the first kind below that it has. XGBoost's `model_10.json` and LightGBM's `model.txt` are
documents, and whole checkpoints of lineages that have no state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from posixpath import splitext
from typing import Protocol, TypeVar

from podferry.contract.destination.series import words_of


class Kind(StrEnum):
    """What a checkpoint is made of, the most telling first."""

    STATE = "state"
    """At least one file that may be a training state: whatever is neither of the others."""
    DOCUMENT = "document"
    """Text only, which may be an entire model."""
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


def kind_of_file(name: str) -> Kind:
    """What one file is, by its name relative to the checkpoint directory."""
    base = name.rpartition("/")[2].lower()
    stem, suffix = splitext(base)
    if suffix in COMPRESSED and splitext(stem)[1]:
        stem, suffix = splitext(stem)
    if suffix in RECORDS or EVENTS in base or (suffix in NAMED and _is_named_as_record(stem)):
        return Kind.RECORD
    return Kind.DOCUMENT if suffix in DOCUMENTS else Kind.STATE


def _is_named_as_record(stem: str) -> bool:
    """`val_loss` is measured, `val_loss=0.30` is what people name weights."""
    words = set(words_of(stem))
    return bool(words & RECORDED) and words <= RECORDED | QUALIFIERS and not re.search(r"\d\.\d", stem)


def kind_of(names: Iterable[str]) -> Kind:
    """What files with these names are together: one state among them decides."""
    found = set[Kind]()
    for name in names:
        found.add(kind_of_file(name))
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
