"""Ordinary ways to save that are doubtful although they are complete, printed in `docs/writers.md`.

Bytes, names and closes cannot distinguish them from a save that was cut short. The tests of `tests/writers`
let the libraries write: there is no other exception to "sure within 2 s".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Which(StrEnum):
    """Which saves stay doubtful: until the next one of the same kind, or a successful end of the trainer.

    The next one has to be complete itself: if it looks like the first, it has rested, or a third has begun.
    Of the last kind, the next one proves nothing.
    """

    FIRST = "the first two"
    EACH = "each"
    ALL = "all"


@dataclass(frozen=True)
class DoubtfulWriter:
    """A way to save that shows too little.

    Attributes:
        key: A short name, for tests.
        library: The library or the habit.
        which: The saves that stay doubtful.
        reason: What cannot be seen.
        remedy: The one line that makes it sure.
        hides_errors: A save that failed looks like a complete one, and becomes sure if the trainer does not
            end with the error: it caught it, or the library did not report it.
    """

    key: str
    library: str
    which: Which
    reason: str
    remedy: str
    hides_errors: bool = False


MARK = "`checkpoint_done(step)`"
MARK_OR_CALLBACK = f"{MARK}, or for Accelerate and Trainer a [callback](#the-one-line-that-makes-it-sure)"
RENAME_DIRECTORY = "`os.replace(temporary, directory)`, or `checkpoint_done(step)`"
RENAME_FILE = '`os.replace(path + ".tmp", path)`'
DOUBTFUL_WRITERS: tuple[DoubtfulWriter, ...] = (
    DoubtfulWriter(
        "files",
        "torch.save, `cp -r` and others: several files, in a directory or side by side",
        Which.FIRST,
        "another file may follow",
        RENAME_DIRECTORY,
        hides_errors=True,
    ),
    DoubtfulWriter(
        "accelerate",
        "Accelerate `save_state`, Hugging Face `save_pretrained`, DeepSpeed, Trainer with several processes",
        Which.FIRST,
        "another file may follow, also of another process",
        MARK_OR_CALLBACK,
    ),
    DoubtfulWriter(
        "megatron",
        "Megatron-LM",
        Which.FIRST,
        "`metadata.json` and the tokenizer's files follow `.metadata`",
        MARK,
    ),
    DoubtfulWriter(
        "paddle",
        "Paddle",
        Which.FIRST,
        "the `.pdopt` may follow the `.pdparams`",
        MARK,
    ),
    DoubtfulWriter(
        "raw",
        "raw files, torch.save in its older format, LightGBM, compressed joblib dumps and pickles",
        Which.FIRST,
        "the format does not show its end",
        RENAME_FILE,
        hides_errors=True,
    ),
    DoubtfulWriter(
        "archives",
        "NumPy `savez`, tar (`.nemo`)",
        Which.FIRST,
        "an exception closes the archive properly, and nothing shows whether members are missing",
        RENAME_FILE,
        hides_errors=True,
    ),
    DoubtfulWriter(
        "sized",
        "files of varying size whose format does not show its end: ONNX with external data, gzip, joblib",
        Which.EACH,
        "no earlier file has the same size",
        RENAME_FILE,
        hides_errors=True,
    ),
    DoubtfulWriter(
        "slow",
        "raw files of constant size that are closed a while after their last write",
        Which.EACH,
        "they may be mapped, and not filled yet",
        RENAME_FILE,
        hides_errors=True,
    ),
    DoubtfulWriter(
        "in_place",
        "a file that is emptied and written again, if its format does not show its end: `last.npy`, "
        "`best.weights.h5`, `last.pt` in torch's older format",
        Which.EACH,
        "old and new bytes look alike",
        RENAME_FILE,
        hides_errors=True,
    ),
    DoubtfulWriter(
        "patched",
        "a file that is changed in place without being emptied, if its format does not show its end: "
        "mode `r+`, a `np.memmap` that is kept, ONNX data that is appended to older data",
        Which.ALL,
        "where one save ends and the next begins, or whether all of it is new",
        RENAME_FILE,
        hides_errors=True,
    ),
    DoubtfulWriter(
        "hdf5",
        "HDF5: h5py, Keras `.weights.h5`",
        Which.EACH,
        "its parts are written in any order, and a failed write while it is closed is reported to nobody",
        RENAME_FILE,
        hides_errors=True,
    ),
    DoubtfulWriter(
        "mapped",
        "a new NumPy array (`.npy`) that is filled through a mapping",
        Which.EACH,
        "a mapping is never closed, and an unwritten part looks like zeros",
        MARK,
    ),
)
"""All exceptions: one table."""
