"""The dataset: scikit-learn's handwritten digits, one PNG file each.

Source: E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository;
the 1,797 images of its test part come with scikit-learn.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

TEST_EVERY = 5
"""Every fifth image is kept for the test."""
DARKEST = 16
"""scikit-learn's pixels go from 0 to 16."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One object of the dataset.

    Attributes:
        name: `train/<digit>/<number>.png` or `test/…`.
        data: A PNG file of 8 x 8 grey pixels.
    """

    name: str
    data: bytes


def pictures(limit: int | None = None) -> list[Picture]:
    """The first `limit` digits as PNG files, or all of them."""
    held = load_digits()
    pairs = zip(held.images[:limit], held.target[:limit], strict=True)
    return [Picture(_name(number, int(digit)), _png(pixels)) for number, (pixels, digit) in enumerate(pairs)]


def _name(number: int, digit: int) -> str:
    part = "train" if number % TEST_EVERY else "test"
    return f"{part}/{digit}/{number:04d}.png"


def _png(pixels: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> bytes:
    grey = np.round(pixels * (255 / DARKEST)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(grey).save(file, "PNG")
    return file.getvalue()
