"""Trains the character model: checkpoints while it runs, and a curve and a sample of text as outputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from podferry.pipelines.text.model import CONTEXT, Model, load, loss, new_model, save, train_batch
from podferry.pipelines.text.tokens import Tokens
from podferry.trainer import ferry

BATCH, SEED = 256, 7
SAVE_EVERY = 100
TEST_EXAMPLES = 4096


@dataclass(frozen=True, slots=True)
class Trained:
    """The result.

    Attributes:
        bits: Cross entropy on the test text, bits per character.
        steps_before: Steps that earlier attempts had completed.
    """

    bits: float
    steps_before: int


def train(dataset: str, checkpoints: str, outputs: str, steps: int, fail_at: int = 0) -> Trained:
    """Train up to `steps`, resuming from the newest sure checkpoint.

    Args:
        dataset: Reference of `train.npy` and `test.npy`.
        checkpoints: URI of the destination.
        outputs: URI of the directory with the curve; it is uploaded even if training fails.
        steps: Steps in total, including those of earlier attempts.
        fail_at: The step before which a first attempt fails on purpose; 0 for none.

    Raises:
        RuntimeError: The failure on purpose.
        FerryError: See `podferry.trainer.ferry.ferry`.
    """
    with ferry(dataset, checkpoints, outputs=outputs) as f:
        assert f.dataset and f.checkpoints and f.outputs  # noqa: PT018, S101 - all were requested
        model = load(f.restored) if f.restored else new_model(SEED)
        before = model.step
        text = np.load(f.dataset / "train.npy")
        while model.step < steps:
            if fail_at and not before and model.step == fail_at:
                raise RuntimeError(f"this attempt fails on purpose before step {fail_at + 1}")
            bits = train_batch(model, *_examples(text, BATCH, (SEED, model.step)))
            if model.step % SAVE_EVERY == 0:
                _report(f.outputs / f"curve-{before}.csv", model, bits)
                save(f.checkpoints / f"step-{model.step}.npz", model)
        found = loss(model, *_examples(np.load(f.dataset / "test.npy"), TEST_EXAMPLES, (SEED,)))
    return Trained(found, before)


def _examples(text: Tokens, count: int, seed: tuple[int, ...]) -> tuple[Tokens, Tokens]:
    """Contexts of shape (count, CONTEXT) at random places, and the characters after them."""
    starts: npt.NDArray[np.int64] = np.random.default_rng(seed).integers(0, len(text) - CONTEXT, count)
    return text[starts[:, None] + np.arange(CONTEXT)], text[starts + CONTEXT]


def _report(path: Path, model: Model, bits: float) -> None:
    """Add a line to the curve; each attempt has a file of its own, named by where it began."""
    with path.open("a") as curve:
        curve.write(f"{model.step},{bits:.4f}\n")
