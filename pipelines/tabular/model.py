"""A wide-and-deep model in plain NumPy: one weight per category, plus a small network over embeddings.

Source: H.-T. Cheng et al., "Wide & Deep Learning for Recommender Systems", 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from podferry.pipelines.tabular.rows import BUCKETS, CATEGORIES, INTEGERS, Rows

EMBEDDING, HIDDEN = 8, 64
LEARNING_RATE = 0.05
SMALLEST = 1e-8
"""Keeps the root of a first squared gradient away from 0."""

Array = npt.NDArray[np.float32]
SHAPES = {
    "wide": (BUCKETS,),
    "embeddings": (BUCKETS, EMBEDDING),
    "hidden": (INTEGERS + CATEGORIES * EMBEDDING, HIDDEN),
    "hidden_bias": (HIDDEN,),
    "output": (HIDDEN,),
    "bias": (1,),
}
"""The parameters by name; a checkpoint with the sums of Adagrad takes 4.7 MB."""


@dataclass(slots=True)
class Model:
    """The model and the state of its training.

    Attributes:
        epoch: Completed epochs.
        parameters: By name, see `SHAPES`.
        squares: The sums of squared gradients of Adagrad, of the same shapes.
    """

    epoch: int
    parameters: dict[str, Array]
    squares: dict[str, Array]


def new_model(seed: int) -> Model:
    """A model with small random embeddings and weights."""
    random = np.random.default_rng(seed)
    deep = {"embeddings": 0.05, "hidden": 0.05, "output": 0.05}
    parameters = {
        name: (random.standard_normal(shape) * deep.get(name, 0.0)).astype(np.float32)
        for name, shape in SHAPES.items()
    }
    return Model(0, parameters, {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()})


def save(path: Path, model: Model) -> None:
    """Write a checkpoint: one npz file."""
    squares = {f"squares_{name}": array for name, array in model.squares.items()}
    np.savez(path, allow_pickle=False, epoch=np.int64(model.epoch), **model.parameters, **squares)


def load(path: Path) -> Model:
    """Read a checkpoint that `save` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        parameters = {name: arrays[name] for name in SHAPES}
        return Model(int(arrays["epoch"]), parameters, {name: arrays[f"squares_{name}"] for name in SHAPES})


def predict(model: Model, rows: Rows) -> Array:
    """The probability of a click, shape (rows,)."""
    return _forward(model.parameters, rows)[-1]


def _forward(parameters: dict[str, Array], rows: Rows) -> tuple[Array, Array, Array]:
    """Inputs (rows, inputs) and activations (rows, HIDDEN) of the deep part, and probabilities (rows,)."""
    embedded = parameters["embeddings"][rows.categories].reshape(len(rows), -1)
    inputs = np.concatenate([rows.integers, embedded], axis=1)
    active = np.maximum(inputs @ parameters["hidden"] + parameters["hidden_bias"], 0)
    wide = parameters["wide"][rows.categories].sum(axis=1)
    scores = wide + active @ parameters["output"] + parameters["bias"]
    return inputs, active, (1 / (1 + np.exp(-scores))).astype(np.float32)


def train_batch(model: Model, rows: Rows) -> float:
    """One step of Adagrad on the mean log loss; returns the loss before the step."""
    parameters = model.parameters
    inputs, active, probabilities = _forward(parameters, rows)
    error = (probabilities - rows.labels) / np.float32(len(rows))
    hidden = np.outer(error, parameters["output"]) * (active > 0)
    embedded = (hidden @ parameters["hidden"].T)[:, INTEGERS:].reshape(len(rows), CATEGORIES, EMBEDDING)
    for name, gradient in (
        ("output", active.T @ error),
        ("hidden", inputs.T @ hidden),
        ("hidden_bias", hidden.sum(axis=0)),
        ("bias", error.sum(keepdims=True)),
    ):
        _descend(model, name, slice(None), gradient)
    touched, owner = np.unique(rows.categories, return_inverse=True)
    owner = owner.ravel()
    wide = np.bincount(owner, np.repeat(error, CATEGORIES), len(touched)).astype(np.float32)
    _descend(model, "wide", touched, wide)
    summed = np.zeros((len(touched), EMBEDDING), np.float32)
    np.add.at(summed, owner, embedded.reshape(-1, EMBEDDING))
    _descend(model, "embeddings", touched, summed)
    return log_loss(probabilities, rows.labels)


def _descend(model: Model, name: str, part: npt.NDArray[np.int32] | slice, gradient: Array) -> None:
    model.squares[name][part] += gradient**2
    step = LEARNING_RATE * gradient / (np.sqrt(model.squares[name][part]) + SMALLEST)
    model.parameters[name][part] -= step.astype(np.float32)


def log_loss(probabilities: Array, labels: Array) -> float:
    """The mean log loss."""
    right = np.where(labels > 0, probabilities, 1 - probabilities)
    return float(-np.log(right + 1e-12).mean())


def area_under_curve(probabilities: Array, labels: Array) -> float:
    """The share of pairs of a click and another row that are in the right order, 0 to 1."""
    ranks = np.empty(len(labels))
    ranks[np.argsort(probabilities)] = np.arange(1, len(labels) + 1)
    clicks = labels > 0
    positive, negative = int(clicks.sum()), int((~clicks).sum())
    return float((ranks[clicks].sum() - positive * (positive + 1) / 2) / max(1, positive * negative))
