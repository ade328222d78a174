"""A small network that tells handwritten digits apart: plain NumPy, so that nothing of it is hidden.

Everything that training needs to go on lies in its checkpoint, and the order of an epoch's images follows
from the seed and the epoch's number alone: training that was interrupted and resumed ends with the very
weights of training that was not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

LAYERS = (64, 512, 512, 10)
"""Units: 8 x 8 pixels in, ten digits out; with its momentum a checkpoint takes 2.4 MB."""
BATCH = 64
RATE = 0.02
MOMENTUM = 0.9
DECAY = 1e-4
WHITE = 255.0


@dataclass(frozen=True, slots=True)
class Model:
    """The network and what training it needs.

    Attributes:
        epoch: Epochs that are done.
        seed: What the first weights and the order of the images follow from.
        weights: Per layer (inputs, outputs), then per layer (outputs,).
        momenta: Of the same shapes.
    """

    epoch: int
    seed: int
    weights: tuple[Array, ...]
    momenta: tuple[Array, ...]


def new_model(seed: int) -> Model:
    """Random weights with He's variance, biases of zero."""
    random = np.random.default_rng(seed)
    shapes = list(pairwise(LAYERS))
    matrices = [
        (random.standard_normal(shape) * np.sqrt(2 / shape[0])).astype(np.float32) for shape in shapes
    ]
    weights = (*matrices, *(np.zeros(outputs, np.float32) for _, outputs in shapes))
    return Model(0, seed, weights, tuple(np.zeros_like(weight) for weight in weights))


def save_model(path: Path, model: Model) -> None:
    """Write a checkpoint: one npz file."""
    arrays = {f"weight_{at}": weight for at, weight in enumerate(model.weights)}
    arrays |= {f"momentum_{at}": momentum for at, momentum in enumerate(model.momenta)}
    np.savez(path, allow_pickle=False, epoch=np.int64(model.epoch), seed=np.int64(model.seed), **arrays)


def load_model(path: Path) -> Model:
    """Read a checkpoint that `save_model` wrote."""
    with np.load(path, allow_pickle=False) as held:
        count = 2 * (len(LAYERS) - 1)
        weights = tuple(held[f"weight_{at}"] for at in range(count))
        momenta = tuple(held[f"momentum_{at}"] for at in range(count))
        return Model(int(held["epoch"]), int(held["seed"]), weights, momenta)


def train_epoch(model: Model, images: Sequence[Path]) -> tuple[Model, float]:
    """Go through all images once; the better model and the mean loss.

    Args:
        model: Where training stands.
        images: PNG files; the folder that each lies in names its digit.
    """
    order = np.random.default_rng((model.seed, model.epoch)).permutation(len(images))
    weights, momenta, losses = list(model.weights), list(model.momenta), []
    for pixels, labels in _batches([images[at] for at in order]):
        slopes, loss = _slopes(weights, pixels, labels)
        losses.append(loss * len(labels))
        for at, slope in enumerate(slopes):
            momenta[at] = np.float32(MOMENTUM) * momenta[at] - np.float32(RATE) * slope
            weights[at] = weights[at] + momenta[at]
    done = Model(model.epoch + 1, model.seed, tuple(weights), tuple(momenta))
    return done, float(sum(losses) / len(images))


def accuracy(model: Model, images: Sequence[Path]) -> float:
    """The share of images that the model names correctly, from 0 to 1."""
    right = 0
    for pixels, labels in _batches(images):
        right += int((_activations(model.weights, pixels)[-1].argmax(axis=1) == labels).sum())
    return right / len(images)


def _batches(images: Sequence[Path]) -> Iterator[tuple[Array, Labels]]:
    """Pixels from 0 to 1 of shape (batch, 64), and digits of shape (batch,)."""
    for start in range(0, len(images), BATCH):
        batch = images[start : start + BATCH]
        pixels = np.stack([_decode(path) for path in batch])
        yield pixels, np.array([int(path.parent.name) for path in batch])


def _decode(path: Path) -> Array:
    with Image.open(path) as image:
        return np.asarray(image, np.float32).ravel() / np.float32(WHITE)


def _activations(weights: Sequence[Array], pixels: Array) -> list[Array]:
    """What each layer puts out, the input first, the unscaled scores of the ten digits last."""
    depth = len(LAYERS) - 1
    found = [pixels]
    for at in range(depth):
        scores = found[-1] @ weights[at] + weights[depth + at]
        found.append(scores if at == depth - 1 else np.maximum(scores, 0))
    return found


def _slopes(weights: Sequence[Array], pixels: Array, labels: Labels) -> tuple[list[Array], float]:
    """The gradient of the mean cross entropy, in the order of `weights`; and the cross entropy."""
    depth, rows = len(LAYERS) - 1, np.arange(len(labels))
    outputs = _activations(weights, pixels)
    scaled = np.exp(outputs[-1] - outputs[-1].max(axis=1, keepdims=True))
    shares = scaled / scaled.sum(axis=1, keepdims=True)
    loss = float(-np.log(shares[rows, labels] + 1e-12).mean())
    error = shares.copy()
    error[rows, labels] -= 1
    error /= np.float32(len(labels))
    matrices, biases = [], []
    for at in reversed(range(depth)):
        matrices.append(outputs[at].T @ error + np.float32(DECAY) * weights[at])
        biases.append(error.sum(axis=0))
        error = (error @ weights[at].T) * (outputs[at] > 0)
    return [*reversed(matrices), *reversed(biases)], loss
