"""What reads images, as programs: `reader.py train …` and `reader.py read …`.

`train` decodes in worker processes into batches for steps of a fixed length, as a GPU would take them, and
writes what it saw as JSON. `read` reads every file once, without decoding, and prints the seconds.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

REMOTE = "s3://"
SIDE = 224
"""Pixels of an image: what image training crops to."""
BUFFER = bytearray(1 << 20)
READ_AT_ONCE = 50
"""Files of one task of `read`."""


def train(source: str, target: Path, epochs: int, batch: int, step: float, workers: int) -> None:
    """So many epochs over the images of a source.

    Args:
        source: A directory, or an S3 URI that s3fs reads from.
        target: Takes the JSON document; times in it are on the system's monotonic clock.
        epochs: How many.
        batch: Images in one.
        step: Seconds of one.
        workers: Processes that decode.
    """
    import numpy as np  # noqa: PLC0415 - `read` needs none of it

    context = get_context("fork")
    slots = [context.RawArray("B", batch * SIDE * SIDE * 3) for _ in range(workers * 2 + 1)]
    views = [np.frombuffer(slot, np.uint8).reshape(batch, SIDE, SIDE, 3) for slot in slots]
    tasks, done = context.SimpleQueue(), context.SimpleQueue()
    arguments = (source, views, tasks, done)
    started = [context.Process(target=_decode, args=arguments, daemon=True) for _ in range(workers)]
    for process in started:
        process.start()
    names = _names(source)
    seen = [_epoch(names, number, batch, step, (len(slots), tasks, done)) for number in range(epochs)]
    for _ in started:
        tasks.put(None)
    for process in started:
        process.join()
    target.write_text(json.dumps({"images": len(names), "epochs": seen}))


def _epoch(
    names: Sequence[str], number: int, batch: int, step: float, queues: tuple[int, Any, Any]
) -> dict[str, float]:
    """One epoch: when it began, when its first batch was there, when it ended; seconds that steps waited."""
    slots, tasks, done = queues
    order = list(names)
    random.Random(number).shuffle(order)  # noqa: S311 - an order, no secret
    batches = iter([order[start : start + batch] for start in range(0, len(order), batch)])
    began = time.monotonic()
    first = waited = 0.0
    at_work = sum(_put(tasks, slot, batches) for slot in range(slots))
    while at_work:
        asked = time.monotonic()
        slot, problem = done.get()
        if problem:
            raise RuntimeError(problem)
        now = time.monotonic()
        first, waited = first or now, waited + now - asked
        time.sleep(step)
        at_work += _put(tasks, slot, batches) - 1
    return {"began": began, "first": first, "ended": time.monotonic(), "waited": waited}


def _put(tasks: Any, slot: int, batches: Iterator[list[str]]) -> int:
    """Have the next batch decoded into a slot; how many were put, 0 or 1."""
    batch = next(batches, None)
    if batch is not None:
        tasks.put((slot, batch))
    return batch is not None


def _decode(source: str, views: Sequence[Any], tasks: Any, done: Any) -> None:
    """A worker: names in, a filled slot out, and what went wrong as text."""
    from PIL import Image  # noqa: PLC0415 - `read` needs none of it

    read = _opener(source)
    while (task := tasks.get()) is not None:
        slot, names = task
        try:
            for place, name in zip(views[slot], names, strict=False):
                place[:] = Image.open(io.BytesIO(read(name))).convert("RGB")
        except Exception as error:  # noqa: BLE001 - the parent raises it: a worker that dies would be waited for
            done.put((slot, repr(error)))
        else:
            done.put((slot, ""))


def _opener(source: str) -> Callable[[str], bytes]:
    """How a file of a source is read; made in each worker."""
    if not source.startswith(REMOTE):
        return lambda name: Path(name).read_bytes()
    read: Callable[[str], bytes] = _s3().cat_file
    return read


def _s3() -> Any:
    from s3fs import S3FileSystem  # noqa: PLC0415 - files need none of it

    return S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"], skip_instance_cache=True)


def _names(source: str) -> list[str]:
    """Every file of a source."""
    if not source.startswith(REMOTE):
        return sorted(f"{folder}/{name}" for folder, _, names in os.walk(source) for name in names)
    # In its own process: s3fs has a thread, and workers that are forked next to one may hang.
    with get_context("spawn").Pool(1) as pool:
        return sorted(pool.apply(_found, (source,)))


def _found(source: str) -> list[str]:
    names: list[str] = _s3().find(source.removeprefix(REMOTE))
    return names


def read(source: str, workers: int) -> float:
    """Read every file of a directory; seconds, the listing included.

    Names are relative to it, so that no contestant has longer paths than another one.
    """
    os.chdir(source)
    with get_context("fork").Pool(workers) as pool:
        started = time.perf_counter()
        names = _names(".")
        pool.map(_read, names, chunksize=max(1, min(READ_AT_ONCE, len(names) // workers)))
        return time.perf_counter() - started


def _read(name: str) -> None:
    """Read a file as a shard is read: through a buffer, which stays."""
    with Path(name).open("rb", buffering=0) as file:
        while file.readinto(BUFFER):
            pass


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=("train", "read"))
    parser.add_argument("source")
    parser.add_argument("--target", type=Path)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--step", type=float)
    parser.add_argument("--workers", type=int, required=True)
    given = vars(parser.parse_args(words))
    if given.pop("work") == "train":
        train(**given)
    else:
        print(read(given["source"], given["workers"]))


if __name__ == "__main__":
    main(sys.argv[1:])
