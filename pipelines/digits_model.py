"""A small network that classifies handwritten digits, in plain NumPy to keep it transparent.

A checkpoint contains everything that training needs to resume, and the order of an epoch's images depends
only on the seed and the epoch. So interrupted and resumed training ends with exactly the same weights as
uninterrupted training.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

LAYERS = (64, 512, 512, 10)
"""Units: 8 x 8 input pixels, ten output digits; a checkpoint with momentum takes 2.4 MB."""
BATCH_SIZE = 64
LEARNING_RATE = 0.02
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-4
WHITE = 255.0


@dataclass(frozen=True, slots=True)
class Model:
    """The network and the state of its training.

    Attributes:
        epoch: Completed epochs.
        seed: Seed of the initial weights and of the order of the images.
        weights: A matrix (inputs, outputs) per layer, then a bias (outputs,) per layer.
        momenta: Momenta of the same shapes.
    """

    epoch: int
    seed: int
    weights: tuple[Array, ...]
    momenta: tuple[Array, ...]


def new_model(seed: int) -> Model:
    """Create a model with random weights (He initialization) and zero biases."""
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
    with np.load(path, allow_pickle=False) as arrays:
        count = 2 * (len(LAYERS) - 1)
        weights = tuple(arrays[f"weight_{at}"] for at in range(count))
        momenta = tuple(arrays[f"momentum_{at}"] for at in range(count))
        return Model(int(arrays["epoch"]), int(arrays["seed"]), weights, momenta)


def read_image(path: Path) -> bytes:
    """The bytes of an image file."""
    return path.read_bytes()


def train_epoch(
    model: Model,
    images: Sequence[Path],
    average: Callable[[list[Array]], list[Array]] = list,
    read: Callable[[Path], bytes] = read_image,
    rate: float = LEARNING_RATE,
) -> tuple[Model, float]:
    """Train on all images once; return the new model and the mean loss.

    Args:
        model: The model so far.
        images: PNG files; the name of the folder is the digit.
        average: Averages the gradients over the processes that train together.
        read: Reads an image file.
        rate: Learning rate.
    """
    order = np.random.default_rng((model.seed, model.epoch)).permutation(len(images))
    weights, momenta, losses = list(model.weights), list(model.momenta), []
    for pixels, labels in _batches([images[at] for at in order], read):
        gradients, loss = _gradients(weights, pixels, labels)
        losses.append(loss * len(labels))
        for at, gradient in enumerate(average(gradients)):
            momenta[at] = np.float32(MOMENTUM) * momenta[at] - np.float32(rate) * gradient
            weights[at] = weights[at] + momenta[at]
    trained = Model(model.epoch + 1, model.seed, tuple(weights), tuple(momenta))
    return trained, float(sum(losses) / len(images))


def accuracy(model: Model, images: Sequence[Path]) -> float:
    """The share of images that the model classifies correctly, from 0 to 1."""
    correct = 0
    for pixels, labels in _batches(images, read_image):
        correct += int((_activations(model.weights, pixels)[-1].argmax(axis=1) == labels).sum())
    return correct / len(images)


def _batches(images: Sequence[Path], read: Callable[[Path], bytes]) -> Iterator[tuple[Array, Labels]]:
    """Pixels from 0 to 1 of shape (batch, 64), and digits of shape (batch,)."""
    for start in range(0, len(images), BATCH_SIZE):
        batch = images[start : start + BATCH_SIZE]
        pixels = np.stack([_decode(read(path)) for path in batch])
        yield pixels, np.array([int(path.parent.name) for path in batch])


def _decode(data: bytes) -> Array:
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image, np.float32).ravel() / np.float32(WHITE)


def _activations(weights: Sequence[Array], pixels: Array) -> list[Array]:
    """The output of each layer: the input first, the unscaled scores of the ten digits last."""
    depth = len(LAYERS) - 1
    outputs = [pixels]
    for at in range(depth):
        scores = outputs[-1] @ weights[at] + weights[depth + at]
        outputs.append(scores if at == depth - 1 else np.maximum(scores, 0))
    return outputs


def _gradients(weights: Sequence[Array], pixels: Array, labels: Labels) -> tuple[list[Array], float]:
    """The gradient of the mean cross entropy, in the order of `weights`, and the cross entropy."""
    depth, rows = len(LAYERS) - 1, np.arange(len(labels))
    outputs = _activations(weights, pixels)
    scaled = np.exp(outputs[-1] - outputs[-1].max(axis=1, keepdims=True))
    probabilities = scaled / scaled.sum(axis=1, keepdims=True)
    loss = float(-np.log(probabilities[rows, labels] + 1e-12).mean())
    error = probabilities.copy()
    error[rows, labels] -= 1
    error /= np.float32(len(labels))
    matrices, biases = [], []
    for at in reversed(range(depth)):
        matrices.append(outputs[at].T @ error + np.float32(WEIGHT_DECAY) * weights[at])
        biases.append(error.sum(axis=0))
        error = (error @ weights[at].T) * (outputs[at] > 0)
    return [*reversed(matrices), *reversed(biases)], loss
