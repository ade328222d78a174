"""Substitutes variables in annotations: `$(namespace)`, `$(rank)`, `$(inputs.NAME)` and others.

`$$(` is a literal `$(`, as in a Kubernetes container's command. Values are inserted unchanged and never
expanded again. Unlike in Kubernetes, an unknown variable is an error: no path with `$(rnak)` in it exists.
"""

from __future__ import annotations

import re

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.suggest import did_you_mean

TOKEN = lazy_pattern(r"\$\$\(|\$\((?P<name>[^()]*)\)|\$\(")
BRACES = lazy_pattern(r"\$\{([a-z-]+)\}|\{\{\s*([a-z-]+)\s*\}\}")
"""As shells and templates write a variable."""
INPUT_PREFIX = "inputs."
KFP_SOURCE = "KFP sets it for the pods of its steps; this pod is not one"
CODE_SOURCE = "It is a hash of the training container, which is unknown here"
SOURCES = {
    "namespace": "The admission request sets it",
    "job": "It is the name of the owning Job, JobSet, TrainJob, PyTorchJob or other controller; in KFP use "
    "$(pipeline), $(task)",
    "pipeline": KFP_SOURCE,
    "task": KFP_SOURCE,
    "rank": "Indexed Jobs (completionMode: Indexed), JobSets, LeaderWorkerSets and the workers of Kubeflow's "
    "jobs have one; a JobSet of several Jobs also needs podferry.io/world",
    "world": "It is the value of podferry.io/world",
    "inputs-hash": KFP_SOURCE,
    "code-hash": CODE_SOURCE,
    "image-hash": CODE_SOURCE,
}
"""Every variable except the inputs, and where its value comes from."""


class Variables(msgspec.Struct, frozen=True):
    """The variables of one pod; None if it has no such value.

    Attributes:
        namespace: The pod's.
        job: Name of the owning Job, JobSet, TrainJob or other controller.
        pipeline: KFP pipeline.
        task: KFP task, with its inner pipelines.
        rank: This pod's number in its training run, from 0.
        world: Number of pods of the training run.
        inputs: KFP inputs as text.
        inputs_hash: Distinguishes two runs of one task, 12 hexadecimal digits.
        code_hash, image_hash: Of the training container's command and of its image's name, likewise.
    """

    namespace: str | None = None
    job: str | None = None
    pipeline: str | None = None
    task: str | None = None
    rank: int | None = None
    world: int | None = None
    inputs: dict[str, str] = {}
    inputs_hash: str | None = None
    code_hash: str | None = None
    image_hash: str | None = None

    def get(self, name: str) -> str | None:
        """The text of a variable, or None if this pod has none."""
        if name.startswith(INPUT_PREFIX):
            return self.inputs.get(name.removeprefix(INPUT_PREFIX))
        value: str | int | None = getattr(self, name.replace("-", "_")) if name in SOURCES else None
        return None if value is None else str(value)


def expand(text: str, variables: Variables) -> str:
    """Replace the variables with their values.

    Raises:
        InvalidSpec: All unknown variables, variables without a value in this pod, and unclosed `$(`.
    """
    found = list(TOKEN.finditer(text))
    InvalidSpec.raise_any(problem for match in found if (problem := _problem(match, variables)))
    return TOKEN.sub(lambda m: "$(" if m["name"] is None else variables.get(m["name"]) or "", text)


def refuse_braces(text: str) -> None:
    """Raise `InvalidSpec` for variables in braces, such as `${namespace}`; names of files may have them."""
    found = ((match[0], match[1] or match[2]) for match in BRACES.finditer(text))
    InvalidSpec.raise_any(
        Problem("a variable in braces", token, f"Write $({name})") for token, name in found if name in SOURCES
    )


def variables_in(text: str) -> set[str]:
    """The names of the variables that a text refers to, known or not."""
    return {match["name"] for match in TOKEN.finditer(text) if match["name"] is not None}


def escape_variables(text: str) -> str:
    """The text whose expansion is `text`."""
    return text.replace("$(", "$$(")


def _problem(match: re.Match[str], variables: Variables) -> Problem | None:
    token, name = match[0], match["name"]
    if token == "$$(":  # noqa: S105 - a token of a text
        return None
    if name is None:
        return Problem("a variable is not closed", repr(token), "Write $(NAME), or $$( for a literal $(")
    if variables.get(name) is not None:
        return None
    if name in SOURCES:
        return Problem("the variable has no value in this pod", token, SOURCES[name])
    if name.startswith(INPUT_PREFIX):
        return _input_problem(token, name.removeprefix(INPUT_PREFIX), variables)
    known = [*SOURCES, f"{INPUT_PREFIX}NAME"]
    return Problem("unknown variable", token, did_you_mean(name, known, f"Known: {', '.join(known)}"))


def _input_problem(token: str, name: str, variables: Variables) -> Problem:
    if not variables.inputs:
        reason = "This step has no inputs" if variables.inputs_hash else KFP_SOURCE
        return Problem("the variable has no value in this pod", token, reason)
    known = f"Inputs with a value: {', '.join(sorted(variables.inputs))}"
    return Problem("no input of this name has a value", token, did_you_mean(name, variables.inputs, known))
