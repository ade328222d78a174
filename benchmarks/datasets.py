"""The sets of files that are fetched: the same bytes every time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
IN_A_DIRECTORY = 100


@dataclass(frozen=True, slots=True)
class Kind:
    """Files of one size class.

    Attributes:
        count: How many.
        least, most: Their bytes; the sizes between are drawn evenly.
    """

    count: int
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Data:
    """One set, a hundred files to a directory.

    Attributes:
        name: Of the case, and of the prefix.
        title: For people.
        kinds: What it holds.
    """

    name: str
    title: str
    kinds: tuple[Kind, ...]

    @property
    def count(self) -> int:
        """How many files."""
        return sum(kind.count for kind in self.kinds)

    def write(self, root: Path) -> Path:
        """Make the files below `root`; their directory."""
        draw = random.Random(self.name)  # noqa: S311 - data, no secret
        folder = root / self.name
        for number, size in enumerate(self._sizes(draw)):
            path = folder / f"{number // IN_A_DIRECTORY:04}" / f"{number:06}.bin"
            if number % IN_A_DIRECTORY == 0:
                path.parent.mkdir(parents=True)
            with path.open("wb", buffering=0) as file:
                for start in range(0, size, MIB):
                    file.write(draw.randbytes(min(size - start, MIB)))
        return folder

    def _sizes(self, draw: random.Random) -> Iterator[int]:
        return (draw.randint(kind.least, kind.most) for kind in self.kinds for _ in range(kind.count))


FULL = {
    data.name: data
    for data in (
        Data("small", "10,000 x 20-50 KB", (Kind(10_000, 20_000, 50_000),)),
        Data("large", "4 x 256 MiB", (Kind(4, 256 * MIB, 256 * MIB),)),
        Data(
            "mixed",
            "5,000 x 1-100 KB, 200 x 1-4 MiB, 2 x 128 MiB",
            (Kind(5_000, 1_000, 100_000), Kind(200, MIB, 4 * MIB), Kind(2, 128 * MIB, 128 * MIB)),
        ),
        Data("tiny", "100,000 x 1 KB", (Kind(100_000, 1000, 1000),)),
        Data("few", "10,000 x 1 KB", (Kind(10_000, 1000, 1000),)),
    )
}
SHORT = {
    data.name: data
    for data in (
        Data("small", "200 x 20-50 KB", (Kind(200, 20_000, 50_000),)),
        Data("large", "2 x 24 MiB", (Kind(2, 24 * MIB, 24 * MIB),)),
        Data("mixed", "50 x 1-100 KB, 2 x 12 MiB", (Kind(50, 1_000, 100_000), Kind(2, 12 * MIB, 12 * MIB))),
        # More than a page of the listing holds.
        Data("tiny", "1,200 x 1 KB", (Kind(1_200, 1000, 1000),)),
        Data("few", "120 x 1 KB", (Kind(120, 1000, 1000),)),
    )
}
"""Shows that it runs."""
