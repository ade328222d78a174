"""Which part of a dataset a process on this machine has, by what its launcher tells it in the environment."""

from __future__ import annotations

from collections.abc import Mapping

from podferry.contract.errors import InvalidSpec

AUTO = "auto"
PAIRS = (
    ("RANK", "WORLD_SIZE"),
    ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"),
    ("PET_NODE_RANK", "PET_NNODES"),
)
"""(rank, how many) as launchers name them: torchrun's processes, Paddle's, and torchrun's own options, which
Kubeflow Trainer sets in each pod before torchrun runs. A process is less than its pod, so it goes first."""
INDEX = "JOB_COMPLETION_INDEX"
"""Number of a pod of an Indexed Job, as those of a JobSet are. Source: Kubernetes, "Job", completion mode."""


def shard_text(text: str, environ: Mapping[str, str], world: str | None = None) -> str:
    """A shard as the annotation has it; `auto` becomes this process's.

    Args:
        text: `RANK/COUNT`, which stays, or `auto`.
        environ: The environment.
        world: How many pods there are, where the user says; a Job tells its pods their number alone.

    Raises:
        InvalidSpec: `auto`, and nothing says which of how many this is.
    """
    if text != AUTO:
        return text
    for rank, count in PAIRS:
        if environ.get(rank) and environ.get(count):
            return f"{environ[rank]}/{environ[count]}"
    if environ.get(INDEX) and world:
        return f"{environ[INDEX]}/{world}"
    looked = [*(f"{rank} and {count}" for rank, count in PAIRS), f"{INDEX} with a world"]
    measured = f"looked for {', '.join(looked)}"
    remedy = "Start it by a launcher that sets them, or write the shard: 0/4"
    raise InvalidSpec.of("shard is auto, and nothing says which part this is", measured, remedy)
