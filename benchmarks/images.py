"""The images of an epoch: JPEG crops of the two photographs that come with scikit-learn.

Source: `sklearn.datasets.load_sample_images`, china.jpg and flower.jpg, 640 x 427 pixels.
"""

from __future__ import annotations

import random
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from PIL import Image
from reader import SIDE
from sklearn.datasets import load_sample_images

QUALITY = 90
"""Gives some 20 KB a file."""
IN_A_DIRECTORY = 100


def make(root: Path, count: int, processes: int) -> None:
    """Write `count` images below `root`; the same ones every time."""
    directories = range(-(-count // IN_A_DIRECTORY))
    with get_context("fork").Pool(processes) as pool:
        pool.map(partial(_directory, root, count), directories)


def _directory(root: Path, count: int, number: int) -> None:
    folder = root / f"{number:04}"
    folder.mkdir(parents=True)
    photographs = [np.asarray(photograph) for photograph in load_sample_images().images]
    draw = random.Random(number)  # noqa: S311 - data, no secret
    for image in range(number * IN_A_DIRECTORY, min((number + 1) * IN_A_DIRECTORY, count)):
        photograph = photographs[image % len(photographs)]
        top, left = (draw.randrange(size - SIDE) for size in photograph.shape[:2])
        crop = photograph[top : top + SIDE, left : left + SIDE]
        Image.fromarray(crop).save(folder / f"{image:06}.jpg", quality=QUALITY)
