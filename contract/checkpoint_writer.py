"""Which pods of a training run write its lineage."""

from __future__ import annotations

from collections.abc import Mapping

from podferry.contract.errors import Problem
from podferry.contract.pod_owner import PodOwner
from podferry.contract.spec import PREFIX
from podferry.contract.variable_substitution import variables_in

PER_RANK_KEYS = ("lineage", "checkpoints")
"""With `$(rank)` in one of these, each pod has a place of its own."""


def is_read_only(settings: Mapping[str, str], owner: PodOwner) -> bool:
    """Whether a pod restores checkpoints and writes none: rank 0 alone writes a lineage that pods share.

    With `world`, the user has said how many pods write together, even if it is 1.

    Args:
        settings: The pod's annotations as written, without their prefix.
        owner: The pod's owner and rank.
    """
    if not owner.follows or "world" in settings:
        return False
    return not any("rank" in variables_in(settings.get(key, "")) for key in PER_RANK_KEYS)


def not_the_writer(checkpoint: str, rank: int | None) -> Problem:
    """Why a checkpoint of a pod that does not write the lineage is not uploaded."""
    place = "this pod is not" if rank is None else f"this pod is rank {rank}"
    together = f"If all pods write it together, set {PREFIX}world to their number"
    apart = f"if each trains by itself, add $(rank) to {PREFIX}lineage"
    alone = f'if this pod alone writes, set {PREFIX}world to "1"'
    what = "not uploaded: without podferry.io/world, only rank 0 writes the checkpoints of a training run"
    return Problem(what, f"{checkpoint}: {place}", f"{together}; {apart}; {alone}")
