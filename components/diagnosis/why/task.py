"""`why` makes the exit task that explains a failed run."""

from __future__ import annotations

from typing import Any

from podferry.components.diagnosis.why import component
from podferry.components.step import check_constants, uncached


def why(*, image: str | None = None) -> Any:
    """A task for `dsl.ExitHandler`: it reads the run's pods and writes why they failed.

    The step's service account needs to list pods and to get pods/log in its namespace, which KFP's own role
    `pipeline-runner` allows, and to list events, which the Role in `deploy/kfp-jobs` allows. What is not
    allowed is named on the page; the step succeeds anyway.

    Args:
        image: Image of the step, a constant; None for `step_image`.

    Returns:
        The task, with the artifact `report`.
    """
    check_constants(image=image)
    return uncached(component.why(), image=image)
