"""What writers without a library of their own share: parts of a training state, and where they are."""

from __future__ import annotations

import io
import re
import shutil
from abc import abstractmethod
from pathlib import Path

import numpy as np

from faults.writers.frame import SMALL, Tensors, Writer

NUMBER = re.compile(r"\d+")
WEIGHT = "weight"
NUMPY_PARTS = (("model", (WEIGHT,)), ("optim", ("layer0", "layer1")), ("sched", ("layer2",)))
"""What a trainer writes side by side, and which tensors are in it."""


class Stepped(Writer):
    """One name for each step."""

    @abstractmethod
    def path(self, step: int) -> Path:
        """The file or directory of a step."""

    def newest(self) -> Path | None:
        """The one with the highest number; unfinished names do not count."""
        pattern = re.sub(r"\d+", r"\\d+", re.escape(self.path(0).name))
        found = [path for path in self.root.iterdir() if re.fullmatch(pattern, path.name)]
        return max(found, key=lambda path: number_in(path.name), default=None)

    def forget(self, step: int) -> None:
        """See `Writer.forget`."""
        remove(self.path(step))


def number_in(name: str) -> int:
    """The last number in a name."""
    return int(NUMBER.findall(name)[-1])


def remove(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def raw(step: int, *tensors: np.ndarray) -> bytes:
    """A format that does not show its end: the step, then the numbers."""
    return b"".join([np.int64(step).tobytes(), *(tensor.tobytes() for tensor in tensors)])


def read_raw(data: bytes, *counts: int) -> tuple[int, list[np.ndarray]]:
    """The inverse of `raw`.

    Args:
        data: As it was read.
        counts: Elements of each tensor.

    Raises:
        ValueError: It has another size.
    """
    if len(data) != 8 + 4 * sum(counts):
        raise ValueError(f"{len(data)} bytes are not {8 + 4 * sum(counts)}")
    numbers = np.frombuffer(data[8:], np.float32)
    ends = np.cumsum(counts)[:-1]
    return int(np.frombuffer(data[:8], np.int64)[0]), np.split(numbers, ends)


def sizes(count: int) -> dict[str, int]:
    """Elements of each tensor by its name, in the order of `expected`."""
    return {**{f"layer{index}": SMALL for index in range(3)}, WEIGHT: count}


def archived(step: int, tensors: Tensors) -> bytes:
    """A zip archive of arrays, as NumPy writes it."""
    buffer = io.BytesIO()
    np.savez(buffer, step=np.int64(step), **tensors)
    return buffer.getvalue()


def read_archive(path: Path) -> tuple[int, Tensors]:
    """The inverse of `archived`."""
    with np.load(path) as archive:
        held = dict(archive)
    return int(held.pop("step")), held


def merged(parts: list[tuple[int, Tensors]]) -> tuple[int, Tensors]:
    """The state whose parts these are.

    Raises:
        ValueError: They are of different steps.
    """
    steps = {step for step, _ in parts}
    if len(steps) != 1:
        raise ValueError(f"these are parts of the steps {sorted(steps)}")
    return steps.pop(), {name: tensor for _, part in parts for name, tensor in part.items()}


def chosen(tensors: Tensors, names: tuple[str, ...]) -> Tensors:
    """Some of the tensors."""
    return {name: tensors[name] for name in names}
