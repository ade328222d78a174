"""Predicts the next character from the eight before it: embeddings and one hidden layer, in plain NumPy.

Source: Y. Bengio et al., "A Neural Probabilistic Language Model", 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from podferry.pipelines.text.tokens import ALPHABET, Tokens

CONTEXT, EMBEDDING, HIDDEN = 8, 16, 128
LEARNING_RATE = 0.1
Array = npt.NDArray[np.float32]
SHAPES = {
    "embeddings": (len(ALPHABET), EMBEDDING),
    "hidden": (CONTEXT * EMBEDDING, HIDDEN),
    "hidden_bias": (HIDDEN,),
    "output": (HIDDEN, len(ALPHABET)),
    "output_bias": (len(ALPHABET),),
}


@dataclass(slots=True)
class Model:
    """The model after so many steps; `parameters` by name, see `SHAPES`."""

    step: int
    parameters: dict[str, Array]


def new_model(seed: int) -> Model:
    """A model with small random weights."""
    random = np.random.default_rng(seed)
    drawn = {name: 0.1 * random.standard_normal(shape) for name, shape in SHAPES.items()}
    return Model(0, {name: array.astype(np.float32) for name, array in drawn.items()})


def save(path: Path, model: Model) -> None:
    """Write a checkpoint: one npz file."""
    np.savez(path, allow_pickle=False, step=np.int64(model.step), **model.parameters)


def load(path: Path) -> Model:
    """Read a checkpoint that `save` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        return Model(int(arrays["step"]), {name: arrays[name] for name in SHAPES})


def loss(model: Model, contexts: Tokens, following: Tokens) -> float:
    """The mean cross entropy in bits per character.

    Args:
        model: The model.
        contexts: Shape (examples, CONTEXT).
        following: The character after each, shape (examples,).
    """
    *_, probabilities = _forward(model.parameters, contexts)
    return float(-np.log2(probabilities[np.arange(len(following)), following] + 1e-12).mean())


def train_batch(model: Model, contexts: Tokens, following: Tokens) -> float:
    """One step of gradient descent; returns the loss before it, in bits per character."""
    parameters = model.parameters
    inputs, active, probabilities = _forward(parameters, contexts)
    rows = np.arange(len(following))
    bits = float(-np.log2(probabilities[rows, following] + 1e-12).mean())
    error = probabilities
    error[rows, following] -= 1
    error /= np.float32(len(following))
    hidden = (error @ parameters["output"].T) * (1 - active**2)
    embedded = (hidden @ parameters["hidden"].T).reshape(-1, EMBEDDING)
    gradients = {
        "output": active.T @ error,
        "output_bias": error.sum(axis=0),
        "hidden": inputs.T @ hidden,
        "hidden_bias": hidden.sum(axis=0),
        "embeddings": np.zeros(SHAPES["embeddings"], np.float32),
    }
    np.add.at(gradients["embeddings"], contexts.ravel(), embedded)
    for name, gradient in gradients.items():
        parameters[name] -= np.float32(LEARNING_RATE) * gradient
    model.step += 1
    return bits


def _forward(parameters: dict[str, Array], contexts: Tokens) -> tuple[Array, Array, Array]:
    """Inputs, activations (examples, HIDDEN) and probabilities (examples, characters)."""
    inputs = parameters["embeddings"][contexts].reshape(len(contexts), -1)
    active = np.tanh(inputs @ parameters["hidden"] + parameters["hidden_bias"])
    scores = active @ parameters["output"] + parameters["output_bias"]
    scaled = np.exp(scores - scores.max(axis=1, keepdims=True))
    return inputs, active, scaled / scaled.sum(axis=1, keepdims=True)
