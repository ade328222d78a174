"""Text files as one array of characters: what `generate` makes of the downloaded files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
"""Line breaks and printable ASCII; every other character becomes a space."""
TEST_SHARE = 0.1
"""Of each file's end: the test text."""

Tokens = npt.NDArray[np.uint8]
CODES = np.full(1 << 8, ALPHABET.index(" "), np.uint8)
CODES[[ord(character) for character in ALPHABET]] = np.arange(len(ALPHABET))


def encode(text: str) -> Tokens:
    """The index in `ALPHABET` of each character, shape (characters,)."""
    points = np.frombuffer(text.encode("utf-32-le", "replace"), "<u4")
    codes: Tokens = CODES[np.minimum(points, len(CODES) - 1)]
    return codes


def decode(tokens: Tokens) -> str:
    """The text of tokens."""
    return "".join(ALPHABET[token] for token in tokens)


def generate(source: Path, target: Path) -> None:
    """Write `train.npy` and `test.npy` below `target`: all text below `source`, cut at `TEST_SHARE`."""
    texts = [encode(path.read_text(errors="replace")) for path in sorted(source.rglob("*.txt"))]
    cuts = [int(len(text) * (1 - TEST_SHARE)) for text in texts]
    np.save(target / "train.npy", np.concatenate([text[:cut] for text, cut in zip(texts, cuts, strict=True)]))
    np.save(target / "test.npy", np.concatenate([text[cut:] for text, cut in zip(texts, cuts, strict=True)]))
