"""Finds a local process's rank, and its shard of a dataset, in the environment that its launcher sets."""

from __future__ import annotations

from collections.abc import Mapping

from podferry.contract.errors import InvalidSpec

AUTO = "auto"
RANK_AND_COUNT = (
    ("RANK", "WORLD_SIZE"),
    ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"),
    ("PET_NODE_RANK", "PET_NNODES"),
)
"""Variables of launchers: torchrun's processes, Paddle's, and torchrun's own options, which Kubeflow Trainer
sets in each pod before torchrun runs. A process is smaller than its pod, so its variables come first."""
COMPLETION_INDEX = "JOB_COMPLETION_INDEX"
"""Number of a pod of an Indexed Job or a JobSet. Source: Kubernetes, "Job", completion mode."""


def resolve_shard(text: str, environ: Mapping[str, str], world: str | None = None) -> str:
    """The annotation's text of a shard: `auto` becomes this process's shard.

    Args:
        text: `RANK/COUNT`, which is returned unchanged, or `auto`.
        environ: The environment.
        world: How many pods there are, if the user says so; a Job sets only their number.

    Raises:
        InvalidSpec: `auto`, but the environment does not say which shard of how many this is.
    """
    if text != AUTO:
        return text
    for rank, count in RANK_AND_COUNT:
        if environ.get(rank) and environ.get(count):
            return f"{environ[rank]}/{environ[count]}"
    if environ.get(COMPLETION_INDEX) and world:
        return f"{environ[COMPLETION_INDEX]}/{world}"
    variables = [
        *(f"{rank} and {count}" for rank, count in RANK_AND_COUNT),
        f"{COMPLETION_INDEX} with a world",
    ]
    remedy = "Use a launcher that sets them, or write the shard: 0/4"
    what = "shard is auto, but nothing says which shard this is"
    raise InvalidSpec.of(what, f"looked for {', '.join(variables)}", remedy)


def launcher_rank(environ: Mapping[str, str], world: int) -> int:
    """The rank of this process among the `world` processes that write a checkpoint together.

    Raises:
        InvalidSpec: The environment has no rank, or one that is not below `world`.
    """
    names = [*(rank for rank, _ in RANK_AND_COUNT), COMPLETION_INDEX]
    found = next(((name, environ[name]) for name in names if environ.get(name, "").isdecimal()), None)
    if found is None:
        what, remedy = (
            "world is above 1, but nothing says which rank this process has",
            "Use a launcher that sets one",
        )
        raise InvalidSpec.of(what, f"looked for {', '.join(names)}", remedy)
    name, text = found
    if int(text) >= world:
        remedy = "Set world to the number of processes that write a checkpoint together"
        raise InvalidSpec.of(
            "world is not above this process's rank, which counts from 0",
            f"world {world}, {name}={text}",
            remedy,
        )
    return int(text)
