"""A whole `podferry dataset get` through the proxy, and whether what came is right."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import obstore
from obstore.store import ObjectStore

from faults.lies import EXPLAINED
from faults.messages import Head
from faults.plan import MIB, Fault
from faults.proxy import proxy
from faults.rules import Rules, is_object
from faults.scene import ROOT
from faults.store import Served
from faults.wire import Seen

KINDS = (
    "500",
    "503",
    "reset in an answer",
    "lost answer",
    "truncated answer",
    "flipped answer",
    "stall",
    "expired credentials",
    *EXPLAINED,
)
"""What may go wrong while somebody reads."""
WEIGHTLESS = 1 << 40
"""Bytes a second: as many as there are."""
SECONDS = 90.0
"""That a command may take on a busy machine before it counts as stuck."""
LONG = 600.0
"""Seconds for which a fault waits for its requests: longer than any command takes."""
AWAY = 1.2
"""Seconds for which credentials are expired. The pauses between five attempts last 1.5 s at least: 0.1, 0.2,
0.4 and 0.8, each with a random part on top."""
SMALL, LARGE = 20_000, 17 * MIB
"""Bytes of the largest small file, and of a large one, which comes in three ranges."""


def dataset(seed: int, small: int, large: int = LARGE) -> dict[str, bytes]:
    """Files by name: small ones, an empty one, a name that must be quoted, two large ones.

    Args:
        seed: Says what is in them.
        small: How many small ones.
        large: Bytes of a large one; the other has one byte more.
    """
    chance = random.Random(seed)  # noqa: S311 - contents, no secret
    files = {
        f"d{number % 7}/{number:04}.bin": chance.randbytes(chance.randint(1, SMALL))
        for number in range(small)
    }
    files |= {"empty": b"", "a b+c %20ü.bin": chance.randbytes(300)}
    return {**files, "large/0.bin": chance.randbytes(large), "large/1.bin": chance.randbytes(large + 1)}


def put(store: ObjectStore, prefix: str, files: Mapping[str, bytes]) -> None:
    """Store a dataset, past the proxy; each object in a single request, so that its tag is its MD5."""
    for name, data in files.items():
        obstore.put(store, f"{prefix}/{name}", data, use_multipart=False)


def mix(seed: int) -> tuple[Fault, ...]:
    """Two to six faults of a seed, each at a request or a few."""
    chance = random.Random(seed)  # noqa: S311 - a plan, no secret
    return tuple(
        Fault(
            chance.choice(KINDS),
            pod=1,
            count=chance.randint(1, 3),
            part=chance.random(),
            seconds=chance.uniform(0.2, AWAY),
        )
        for _ in range(chance.randint(2, 6))
    )


Runner = Callable[[list[str], Mapping[str, str]], tuple[int | None, str]]
"""Carries out podferry's words in an environment; see `command`."""
PODFERRY = (sys.executable, "-m", "podferry.cli.main")


def command(
    words: Sequence[str], environment: Mapping[str, str], program: Sequence[str] = PODFERRY
) -> tuple[int | None, str]:
    """Run podferry; its exit code, None where it did not end in time, and what it said."""
    try:
        done = subprocess.run(
            [*program, *words],
            env={**os.environ, **environment},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return None, str(late.stderr or "")
    return done.returncode, done.stderr


@dataclass(frozen=True, slots=True)
class Fetched:
    """What became of one command.

    Attributes:
        code: Its exit code; None where it did not end.
        said: What it wrote to standard error.
        flaws: What is wrong with what came, or with what it said.
        fired: The faults that hit something, by kind.
        seconds: It took.
    """

    code: int | None
    said: str
    flaws: tuple[str, ...]
    fired: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Fetching:
    """Where datasets are fetched from.

    Attributes:
        store: Holds them.
        prefix: The dataset's.
        files: What is there.
    """

    store: Served
    prefix: str
    files: Mapping[str, bytes]

    def __call__(
        self,
        stage: Path,
        *faults: Fault,
        only: Callable[[Head], bool] = lambda _: True,
        run: Runner = command,
    ) -> Fetched:
        """Fetch it.

        Args:
            stage: Where to; it may be there already.
            faults: What goes wrong.
            only: Which requests may be hit.
            run: Carries the command out.
        """
        rules, began = Rules(WEIGHTLESS, only), time.monotonic()
        with proxy(self.store.port, rules, lambda: 0, _Armed(rules, faults, only)) as url:
            words = [
                "dataset",
                "get",
                f"s3://{self.store.bucket}/{self.prefix}",
                str(stage),
                "--endpoint",
                url,
            ]
            code, said = run(words, self.store.environment)
        fired: Counter[str] = Counter()
        for fault, hits in rules.hits.items():
            fired[fault.kind] += hits
        return Fetched(code, said, tuple(self._flaws(stage, code, said)), fired, time.monotonic() - began)

    def _flaws(self, stage: Path, code: int | None, said: str) -> list[str]:
        """What is in the stage is right whatever happened; without an error all of it is there."""
        found = {path.relative_to(stage).as_posix(): path for path in stage.rglob("*") if path.is_file()}
        flaws = [
            f"{name} is not what was stored"
            for name, path in found.items()
            if name in self.files and path.read_bytes() != self.files[name]
        ]
        if code is None:
            return [*flaws, f"it did not end in {SECONDS:g} s"]
        if code == 0:
            missing = self.files.keys() - found.keys()
            flaws += [f"{name} is missing, and no error names it" for name in missing]
            flaws += [f"{name} was never stored" for name in found.keys() - self.files.keys()]
        elif not self._named(said):
            flaws.append(f"an error that names neither an object nor the dataset: {said[-500:]!r}")
        return flaws

    def _named(self, said: str) -> bool:
        """Whether an error names the place and is one of podferry's own."""
        where = any(name in said for name in self.files) or self.prefix in said
        return where and "podferry: " in said and "Traceback" not in said


class _Armed:
    """Arms faults with the first request that they may hit: a command takes a while to begin."""

    def __init__(self, rules: Rules, faults: Sequence[Fault], only: Callable[[Head], bool]) -> None:
        self._rules, self._faults, self._only = rules, list(faults), only

    def __call__(self, request: Head) -> Seen:
        if self._only(request):
            now, faults, self._faults = time.monotonic(), self._faults, []
            for fault in faults:
                lasting = fault.seconds if fault.kind == "expired credentials" else LONG
                self._rules.arm(fault, now + lasting)
        return Seen(request)


def is_data(head: Head) -> bool:
    """Whether a request asks for an object, not for a list."""
    return head.method == "GET" and is_object(head)
