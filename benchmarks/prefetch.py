"""How fast a dataset comes: `podferry run` against s5cmd and s3fs, from a real S3 server on loopback.

Server, source and targets lie in memory, so that no disk decides. Everything that a user waits for counts:
the start of the program, the listing, the checks, the copy.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from filecmp import dircmp
from importlib.metadata import version
from pathlib import Path

from harness import Command, Contest, compare, report
from serving import BUCKET, HERE, KEYS, MIB, bucket, in_memory, measured_on, s5cmd

S3FS = """
import sys, s3fs
s3fs.S3FileSystem(endpoint_url=sys.argv[1]).get(sys.argv[2], sys.argv[3], recursive=True)
"""


@dataclass(frozen=True, slots=True)
class Data:
    """Files of one size class, a hundred to a directory.

    Attributes:
        name: Of the case, and of the prefix.
        title: For people.
        count, least, most: How many files, and their bytes.
    """

    name: str
    title: str
    count: int
    least: int
    most: int

    def write(self, root: Path) -> None:
        """Make the files; the same ones every time."""
        draw = random.Random(self.name)  # noqa: S311 - data, no secret
        for number in range(self.count):
            path = root / self.name / f"{number // 100:03}" / f"{number:06}.bin"
            path.parent.mkdir(parents=True, exist_ok=True)
            left = draw.randint(self.least, self.most)
            with path.open("wb") as file:
                while left:
                    left -= file.write(draw.randbytes(min(left, MIB)))


FULL = (
    Data("small", "10,000 x 20-50 KB", 10_000, 20_000, 50_000),
    Data("large", "4 x 256 MiB", 4, 256 * MIB, 256 * MIB),
)
SHORT = (
    Data("small", "300 x 20-50 KB", 300, 20_000, 50_000),
    Data("large", "2 x 8 MiB", 2, 8 * MIB, 8 * MIB),
)


@contextmanager
def served(sizes: tuple[Data, ...], folder: Path) -> Iterator[tuple[str, Path]]:
    """A server that holds the data: its endpoint, and the directory in which it keeps the objects."""
    source = folder / "source"
    for data in sizes:
        data.write(source)
    with bucket(folder / "server") as (endpoint, held):
        command = s5cmd(endpoint, "cp", f"{source}/", f"s3://{BUCKET}/")
        subprocess.run(command, env=KEYS, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(source)
        yield endpoint, held


def contest(data: Data, endpoint: str, held: Path, folder: Path) -> Contest:
    """Every contestant brings the same prefix into a directory of its own."""
    uri, source = f"s3://{BUCKET}/{data.name}", held / data.name

    def bringing(name: str, *words: str) -> Command:
        target = folder / name

        def clear() -> None:
            for path in (target, target.with_name(f"{name}.podferry")):
                shutil.rmtree(path, ignore_errors=True)

        def check() -> None:
            found = target if name != "s3fs" or (target / "000").exists() else target / data.name
            if differs(source, found):
                raise RuntimeError(f"{name} did not bring {uri} as it is")
            clear()

        return Command([word.format(target) for word in words], KEYS, clear, check)

    wishes = ("--endpoint", endpoint, "--dataset", uri, "--dataset-path", "{}")
    return Contest(
        data.title,
        ours=bringing("podferry", str(HERE / "podferry"), "run", *wishes, "--", "true"),
        peers={
            "s5cmd": bringing("s5cmd", *s5cmd(endpoint, "cp", f"{uri}/*", "{}/")),
            "s3fs": bringing("s3fs", sys.executable, "-c", S3FS, endpoint, f"{BUCKET}/{data.name}", "{}"),
        },
        limit=bringing("cp", "cp", "-r", str(source), "{}"),
    )


def differs(one: Path, other: Path) -> bool:
    """Whether two directories hold different names or sizes; contents are the contestants' own business."""
    found = dircmp(one, other)
    if found.left_only or found.right_only or found.common_funny:
        return True
    sizes = ((one / name).stat().st_size != (other / name).stat().st_size for name in found.common_files)
    return any(sizes) or any(differs(one / name, other / name) for name in found.common_dirs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=7, help="rounds that count (default: %(default)s)")
    parser.add_argument("--short", action="store_true", help="little data, two rounds: shows that it runs")
    options = parser.parse_args()
    sizes, pairs = (SHORT, 2) if options.short else (FULL, options.pairs)
    about = measured_on(**{name: version(name) for name in ("podferry", "obstore", "s3fs")})
    with in_memory() as folder, served(sizes, folder) as (endpoint, held):
        contests = [contest(data, endpoint, held, folder) for data in sizes]
        results = [result for one in contests for result in compare(one, pairs)]
    print(report("prefetch-short" if options.short else "prefetch", about, results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
