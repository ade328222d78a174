"""The picture of the epochs: how far each way is after how long, and when podferry has caught up with it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
from catching import break_even, ends_of

mpl.use("agg")
from matplotlib import pyplot as plt

COLOURS = plt.get_cmap("tab10").colors


def _behind(ours: Sequence[float], theirs: Sequence[float]) -> str:
    found = break_even(ours, theirs)
    return f": break-even at epoch {found}" if found else ""


def draw(title: str, seen: Mapping[str, Sequence[Mapping[str, float]]], ours: str) -> bytes:
    """A PNG: seconds over epochs on the left, the share of time that steps wait on the right.

    Args:
        title: What was read, from where.
        seen: By contestant, its epochs: `first`, `ended` since the start of all, `seconds`, `waited`.
        ours: Which of them is drawn thick.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6), layout="constrained")
    for number, (name, epochs) in enumerate(seen.items()):
        ends = ends_of(epochs)
        start = [epochs[0]["first"], *ends]
        width = 3.0 if name == ours else 1.5
        label = name if name == ours else f"{name}{_behind(ends_of(seen[ours]), ends)}"
        left.plot(
            range(len(start)), start, marker="o", label=label, color=COLOURS[number % 10], linewidth=width
        )
        shares = [epoch["waited"] / epoch["seconds"] for epoch in epochs]
        places = [
            place + (number - (len(seen) - 1) / 2) / (len(seen) + 1) for place in range(1, len(epochs) + 1)
        ]
        right.bar(places, shares, width=0.9 / (len(seen) + 1), color=COLOURS[number % 10])
    left.set(
        xlabel="epochs done (0: the first batch is there)", ylabel="seconds since the start, staging included"
    )
    left.set_xticks(range(max(map(len, seen.values())) + 1))
    left.set_ylim(bottom=0)
    figure.legend(loc="outside lower center", ncols=3)
    right.set(xlabel="epoch", ylabel="share of the time that the step waits", ylim=(0, 1))
    right.set_xticks(range(1, max(map(len, seen.values())) + 1))
    figure.suptitle(title)
    file = BytesIO()
    figure.savefig(file, format="png", dpi=110)
    plt.close(figure)
    return file.getvalue()


def write(
    path: Path, title: str, picture: bytes, rows: Sequence[Mapping[str, str]], notes: Sequence[str]
) -> None:
    """The picture next to its figures, in one self-contained HTML file, and as `.png`."""
    path.with_suffix(".png").write_bytes(picture)
    head = "".join(f"<th>{escape(name)}" for name in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}" for cell in row.values()) for row in rows)
    said = "".join(f"<p>{escape(note)}" for note in notes)
    path.write_text(
        f"<!doctype html><meta charset=utf-8><title>{escape(title)}</title>"
        "<style>body{font:15px sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:right}"
        "td:first-child,th:first-child{text-align:left}</style>"
        f'<h1>{escape(title)}</h1><img alt="seconds over epochs" '
        f'src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
        f"<table><tr>{head}{body}</table>{said}\n"
    )
