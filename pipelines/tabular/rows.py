"""Rows in the format of Criteo's display advertising challenge, and the arrays that training reads.

A row is text, separated by tabs: the label (1 for a click), 13 integers and 26 hexadecimal categories; any of
the 39 may be missing. Source: the challenge's description, https://www.kaggle.com/c/criteo-display-ad-challenge
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

INTEGERS, CATEGORIES = 13, 26
BUCKETS = 1 << 16
"""Hash buckets that all categories share."""
SUFFIX = ".tsv.gz"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as arrays.

    Attributes:
        labels: 0 or 1, shape (rows,), float32.
        integers: log(1 + x), 0 if missing or negative, shape (rows, 13), float32.
        categories: Hash buckets, 0 if missing, shape (rows, 26), int32.
    """

    labels: npt.NDArray[np.float32]
    integers: npt.NDArray[np.float32]
    categories: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, rows: npt.NDArray[np.int64] | slice) -> Rows:
        """Some of the rows."""
        return Rows(self.labels[rows], self.integers[rows], self.categories[rows])


def parse(lines: Iterable[str]) -> Rows:
    """Parse rows of text."""
    fields = [line.rstrip("\n").split("\t") for line in lines]
    integers = np.array([[float(text or 0) for text in row[1 : 1 + INTEGERS]] for row in fields], np.float32)
    return Rows(
        labels=np.array([row[0] == "1" for row in fields], np.float32),
        integers=np.log1p(np.maximum(integers, 0)),
        categories=np.array([_buckets(row[1 + INTEGERS :]) for row in fields], np.int32),
    )


def _buckets(categories: Iterable[str]) -> list[int]:
    """The bucket of each category; the same value in another field has another bucket."""
    named = (f"{field}={text}" if text else "" for field, text in enumerate(categories))
    return [zlib.crc32(name.encode()) % (BUCKETS - 1) + 1 if name else 0 for name in named]


def convert(source: Path, target: Path) -> None:
    """Convert every shard of text below `source` to arrays below `target`: once, not in every epoch."""
    for shard in sorted(source.rglob(f"*{SUFFIX}")):
        with gzip.open(shard, "rt") as lines:
            rows = parse(lines)
        name = shard.relative_to(source).as_posix().removesuffix(SUFFIX)
        path = target / f"{name}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, labels=rows.labels, integers=rows.integers, categories=rows.categories)


def load(shard: Path) -> Rows:
    """Read a shard that `convert` wrote."""
    with np.load(shard, allow_pickle=False) as arrays:
        return Rows(arrays["labels"], arrays["integers"], arrays["categories"])
