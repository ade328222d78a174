"""Shared by all steps: their image, their Secret, and how they stay out of KFP's cache.

The image contains `podferry[kfp]`; nothing is installed when a step starts. So a step runs without a package
index, and KFP's SubprocessRunner installs nothing into a laptop's environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kfp import dsl, kubernetes
from kfp.dsl.pipeline_channel import PipelineChannel

from podferry.components.secret_dir import DESTINATION_SECRET_DIR, SECRET_DIR, SOURCE_SECRET_DIR
from podferry.components.task_marks import OWN_STEP

DEFAULT_IMAGE = "podferry:0.1.0-python3.12"
"""The tag contains `python`: KFP's SubprocessRunner warns about an image whose name does not."""
IMAGE_VARIABLE = "PODFERRY_IMAGE"
SELECTION = ("include", "exclude")
"""Settings that are globs."""
RUN_INPUT = "run"
"""The input of our components that gets the run's id."""


def step_image(environ: Mapping[str, str]) -> str:
    """The image of the steps: `PODFERRY_IMAGE` when the pipeline is compiled, or the default."""
    return environ.get(IMAGE_VARIABLE) or DEFAULT_IMAGE


def step(function: Callable[..., Any]) -> Any:
    """Turn a function that only calls its runner into a component."""
    return dsl.component(function, base_image=step_image(os.environ), install_kfp_package=False)


def check_constants(**arguments: Any) -> None:
    """Raise `InvalidSpec` with the problems of all constants, before KFP sees them."""
    # What parses takes longer to import than all the names of `podferry.components` together.
    from podferry.components.constants import constant_problems  # noqa: PLC0415
    from podferry.contract.errors import InvalidSpec  # noqa: PLC0415

    InvalidSpec.raise_any(constant_problems(arguments))


def is_absent(value: Any) -> bool:
    """Whether it is None or an empty text; not by `==`, which makes a condition of a channel."""
    return value is None or (isinstance(value, str) and not value)


def setting_text(name: str, value: Any) -> Any:
    """The value of a setting; that of `include` and `exclude` may be a list."""
    return globs_text(value) if name in SELECTION else value


def globs_text(globs: Any) -> Any:
    """Globs as the one text that a step takes: of a list of texts and channels, each member is one glob.

    Any other value is returned unchanged, for the checks to refuse.
    """
    # Imported on call: see check_constants.
    from podferry.contract.selection import list_of_globs  # noqa: PLC0415

    if not isinstance(globs, list | tuple):
        return globs
    if not all(isinstance(one, str | PipelineChannel) for one in globs):
        return globs
    return list_of_globs(str(one.pattern) if isinstance(one, PipelineChannel) else one for one in globs)


def uncached(task: Any, secret: Any = None, directory: Path = SECRET_DIR, image: str | None = None) -> Any:
    """Keep a step of our own out of KFP's cache, mount its Secret and set its image.

    For steps that look at the outside. KFP's cache compares only inputs, so such a step would get the result
    of an earlier run. A component cannot turn the cache off for itself; only a task can. The component
    declares `run: str = ""`.

    Args:
        task: The step.
        secret: Name of the Secret or a channel of it; None or an empty text for the pod's identity.
        directory: Mount path of the Secret.
        image: Image of the step, a constant; None for `step_image`.

    Returns:
        The task.
    """
    if not is_absent(secret):
        mount_secret(task, secret, directory)
    if image is not None:
        task.set_container_image(image)
    setattr(task, OWN_STEP, True)
    return exclude_from_cache(task, RUN_INPUT)


def exclude_from_cache(task: Any, run_input: str) -> Any:
    """Turn KFP's cache off for a task, and give it the run's id as the input `run_input`.

    `enable_caching=True` in the client overrides the first for all tasks of a run. The second makes each run
    a miss. The component need not declare the input: KFP passes it on.
    """
    task.set_caching_options(False)
    task.inputs[run_input] = dsl.PIPELINE_JOB_ID_PLACEHOLDER
    return task


def mount_secret(task: Any, secret: Any, directory: Path = SECRET_DIR) -> Any:
    """Mount a Secret into a step of your own, where `prepared` looks for the credentials of its stores.

    Args:
        task: The step.
        secret: Name of the Secret, or a channel of it.
        directory: Where; by default that of the only Secret of a step.

    Returns:
        The task.

    Raises:
        InvalidSpec: `task` is no step, or the name cannot be that of a Secret.
    """
    _check_mount(task, secret)
    # Optional: the step reports a missing Secret, instead of a pod that does not start.
    return kubernetes.use_secret_as_volume(task, secret, str(directory), optional=True)


def _check_mount(task: Any, secret: Any) -> None:
    # Imported on call: see check_constants.
    from podferry.components.constants import constant_problems  # noqa: PLC0415
    from podferry.components.task_arguments import no_step_problem  # noqa: PLC0415
    from podferry.contract.errors import InvalidSpec, Problem  # noqa: PLC0415

    problems = [one for one in (no_step_problem("mount_secret", task),) if one is not None]
    if is_absent(secret):
        problems.append(Problem("secret: no value", repr(secret), "Write the name of a Secret"))
    InvalidSpec.raise_any([*problems, *constant_problems({"secret": secret})])


def mount_own_secrets(task: Any, source_secret: Any, destination_secret: Any) -> None:
    """Mount the Secrets that apply to what a step reads alone, and to what it writes alone, unless None."""
    for secret, directory in (
        (source_secret, SOURCE_SECRET_DIR),
        (destination_secret, DESTINATION_SECRET_DIR),
    ):
        if not is_absent(secret):
            mount_secret(task, secret, directory)
