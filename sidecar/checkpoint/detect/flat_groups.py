"""Files at the top of the checkpoint directory that one save writes side by side. Pure, over names.

Many trainers write `model.pt`, `optimizer.pt` and `scheduler.pt` next to each other, or let `save_pretrained`
write to the top. Restored alone, any of them is half a checkpoint. So files whose names say that they are a
part of a training state belong to one checkpoint if they have the same numbers and the same markers:
`model_100.pt` and `optim_100.pt`, `best_model.pt` and `best_optim.pt`. Files of any words that one save has
written belong together if they are numbered: see `same_save.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from podferry.contract.destination.kind import Kind, kind_of
from podferry.contract.destination.series import NUMBER, without_parts, words_of
from podferry.sidecar.checkpoint.detect.same_save import MARKERS, UNITS, numbered_saves, worker_saves

PARTS = frozenset(
    {
        *(
            "actor",
            "adapter",
            "args",
            "backbone",
            "buffer",
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
            "replay",
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
PARTNERS = frozenset({"agent"})
"""A whole state alone, and a part next to others: `agent.pkl` and `replay_buffer.pkl`."""
PRIMARY = PARTNERS | {"model", "net", "weights", "params", "generator", "policy", "actor", "encoder", "unet"}
"""The parts that people name a checkpoint after."""
GROWING = frozenset({".log", ".jsonl", ".csv", ".tsv", ".out", ".err"})
"""Suffixes of files that are written all the time: in a group they would keep it from ever being quiet."""
ARCHIVES = frozenset({".ckpt", ".keras", ".nemo"})
"""Formats that contain an entire training state, unless several archives are named after parts of one."""
ENTIRE = PRIMARY - {"generator", "actor", "encoder"} | {"ema", "lora", "state", "states", "trainer"}
"""Parts that people name an archive of an entire state after."""
NUMBERED_SUFFIX = re.compile(r"\d+|\w*[_-]\d+|(?:step|iter|epoch|it|ep)\d+")
"""`ckpt.100`, `ckpt.step-100`, LightGBM's `model.txt.snapshot_iter_100`: the number is part of the name."""


def has_numbered_suffix(name: str) -> bool:
    """Whether the last suffix of a file's name is a step: it distinguishes checkpoints, not formats."""
    _, dot, suffix = name.rpartition(".")
    return bool(dot) and NUMBERED_SUFFIX.fullmatch(suffix.lower()) is not None


def is_part(stem: str, suffixes: Iterable[str]) -> bool:
    """Whether files of this stem are one part of a training state, by their names."""
    found = set(suffixes)
    return bool(PARTS.intersection(words_of(stem))) and not found & (GROWING | ARCHIVES)


def _is_partner(stem: str, suffixes: Iterable[str]) -> bool:
    """Whether files of this stem are a state that has parts next to it, if there are any."""
    return bool(PARTNERS.intersection(words_of(stem))) and not set(suffixes) & (GROWING | ARCHIVES)


def _is_archive_of_part(stem: str, suffixes: Iterable[str]) -> bool:
    """Whether an archive has one part of a state, by its name: `encoder-2-3000.ckpt`."""
    words = set(words_of(stem)) - UNITS - MARKERS
    return bool(words) and words <= PARTS - ENTIRE and not set(suffixes) - ARCHIVES


def _may_have_company(stem: str, suffixes: Iterable[str]) -> bool:
    """Whether files of this stem may be one part of a save that has the same number."""
    found = set(suffixes)
    rotated = any(suffix and stem.endswith(suffix) for suffix in found)  # `ckpt.pt.1`
    is_state = kind_of(f"{stem}{suffix}" for suffix in found) is Kind.STATE
    return is_state and not rotated and not found & (GROWING | ARCHIVES)


def group_stems(stems: Mapping[str, Iterable[str]], changed_ns: Mapping[str, int]) -> dict[str, str]:
    """The checkpoint of each stem at the top that is a part of one.

    Args:
        stems: The suffixes of the files of each stem.
        changed_ns: When the files of each stem were last written, nanoseconds since the epoch.

    Returns:
        Stem to checkpoint: the stem that people would name it after, the first of them by name.
    """
    parts: dict[tuple[tuple[str, ...], frozenset[str]], list[str]] = {}
    for stem, suffixes in stems.items():
        if is_part(stem, suffixes) or _is_archive_of_part(stem, suffixes) or _is_partner(stem, suffixes):
            key = tuple(NUMBER.findall(without_parts(stem))), MARKERS.intersection(words_of(stem))
            parts.setdefault(key, []).append(stem)
    numbered = {
        stem: changed_ns[stem] for stem, suffixes in stems.items() if _may_have_company(stem, suffixes)
    }
    groups = _joined([*parts.values(), *numbered_saves(numbered), *worker_saves(numbered)])
    return {stem: min(group, key=_rank) for stem, group in groups.items()}


def _joined(groups: Iterable[list[str]]) -> dict[str, list[str]]:
    """The members of all groups that a stem is in, and of those that share a member with these."""
    owner: dict[str, list[str]] = {}
    for group in groups:
        members = list(dict.fromkeys(one for stem in group for one in owner.get(stem, [stem])))
        owner |= dict.fromkeys(members, members)
    return owner


def _rank(stem: str) -> tuple[bool, str]:
    return not PRIMARY.intersection(words_of(stem)), stem
