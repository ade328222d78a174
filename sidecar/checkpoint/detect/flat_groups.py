"""Files at the top of the checkpoint directory that one save writes side by side. Pure, over names.

Many trainers write `model.pt`, `optimizer.pt` and `scheduler.pt` next to each other, or let `save_pretrained`
write to the top. Restored alone, any of them is half a checkpoint. So files whose names say that they are a
part of a training state belong to one checkpoint if they have the same numbers and the same markers:
`model_100.pt` and `optim_100.pt`, `best_model.pt` and `best_optim.pt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

PARTS = frozenset(
    {
        *(
            "actor",
            "adapter",
            "args",
            "backbone",
            "classifier",
            "config",
            "critic",
            "decoder",
            "discriminator",
        ),
        *(
            "ema",
            "embedding",
            "embeddings",
            "encoder",
            "generation",
            "generator",
            "head",
            "lora",
            "lr",
            "merges",
        ),
        *("model", "net", "opt", "optim", "optimizer", "optimizers", "params", "policy", "preprocessor"),
        *(
            "processor",
            "random",
            "rng",
            "sampler",
            "scaler",
            "sched",
            "scheduler",
            "special",
            "state",
            "states",
        ),
        *(
            "student",
            "teacher",
            "tokenizer",
            "tokens",
            "trainer",
            "training",
            "unet",
            "vae",
            "vocab",
            "weights",
        ),
    }
)
"""Words that name a part of a training state: those of torch, Hugging Face, GAN and RL code."""
PRIMARY = frozenset({"model", "net", "weights", "params", "generator", "policy", "actor", "encoder", "unet"})
"""The parts that people name a checkpoint after."""
MARKERS = frozenset({"best", "last", "latest", "final"})
GROWING = frozenset({".log", ".jsonl", ".csv", ".tsv", ".out", ".err"})
"""Suffixes of files that are written all the time: in a group they would keep it from ever being quiet."""
ARCHIVES = frozenset({".ckpt", ".keras", ".nemo"})
"""Formats that contain an entire training state, whatever their names."""
WORD, NUMBER = re.compile(r"[a-z]+"), re.compile(r"\d+")
NUMBERED_SUFFIX = re.compile(r"\d+|\w*[_-]\d+|(?:step|iter|epoch|it|ep)\d+")
"""`ckpt.100`, `ckpt.step-100`, LightGBM's `model.txt.snapshot_iter_100`: the number is part of the name."""


def has_numbered_suffix(name: str) -> bool:
    """Whether the last suffix of a file's name is a step: it distinguishes checkpoints, not formats."""
    _, dot, suffix = name.rpartition(".")
    return bool(dot) and NUMBERED_SUFFIX.fullmatch(suffix.lower()) is not None


def is_part(stem: str, suffixes: Iterable[str]) -> bool:
    """Whether files of this stem are one part of a training state, by their names."""
    found = set(suffixes)
    return bool(PARTS.intersection(WORD.findall(stem.lower()))) and not found & (GROWING | ARCHIVES)


def group_stems(stems: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The checkpoint of each stem at the top that is a part of one.

    Args:
        stems: The suffixes of the files of each stem.

    Returns:
        Stem to checkpoint: the stem that people would name it after, the first of them by name.
    """
    groups: dict[tuple[tuple[str, ...], frozenset[str]], list[str]] = {}
    for stem, suffixes in stems.items():
        if is_part(stem, suffixes):
            words = WORD.findall(stem.lower())
            key = tuple(NUMBER.findall(stem)), MARKERS.intersection(words)
            groups.setdefault(key, []).append(stem)
    return {stem: min(group, key=_rank) for group in groups.values() for stem in group}


def _rank(stem: str) -> tuple[bool, str]:
    return not PRIMARY.intersection(WORD.findall(stem.lower())), stem
