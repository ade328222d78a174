"""Says what is wrong with a value that is given where a step, or an output of one, belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kfp.dsl import PipelineTask
from kfp.dsl.base_component import BaseComponent
from kfp.dsl.graph_component import GraphComponent
from kfp.dsl.pipeline_channel import PipelineChannel

from podferry.components.task_marks import OWN_STEP
from podferry.contract.errors import Problem

CHANNEL = re.compile(r"\{\{channel:task=(?P<task>[^;]*);name=(?P<name>[^;]*);type=.*?;\}\}")
"""A channel in a text, as KFP writes it while it compiles."""
REFERENCE_OUTPUT = "reference"
"""The output of podferry's steps that holds a frozen reference."""


def no_step_problem(name: str, value: Any) -> Problem | None:
    """The problem of what is given to `name`, which needs a step that runs a container."""
    if isinstance(value, BaseComponent) and not isinstance(value, GraphComponent):
        remedy = f"Call it, and give {name} the task that it returns"
        return Problem(f"{name} needs a step, not a component", value.name, remedy)
    if isinstance(value, PipelineTask | GraphComponent):
        if getattr(value, "container_spec", None) is not None:
            return None
        remedy = f"Inside the pipeline, give {name} the task that a component returns"
        return Problem(f"{name} needs a step, not a pipeline or an importer", value.name, remedy)
    return Problem(f"{name} needs a step", displayed(value), f"Give {name} the task that a component returns")


def no_training_problem(name: str, value: Any) -> Problem | None:
    """The same for `name`, which needs a step that trains: not one of podferry's own."""
    if (problem := no_step_problem(name, value)) is not None:
        return problem
    if not getattr(value, OWN_STEP, False):
        return None
    remedy = "Give it the step that trains; a step that runs a job takes settings as its own keywords"
    return Problem(f"{name} needs a training, not a step of podferry", value.name, remedy)


def no_output_problem(value: Any) -> Problem | None:
    """The problem of a task, or of a component, in place of an output."""
    if isinstance(value, BaseComponent):
        remedy = "Call it, and pass an output of the task that this returns"
        return Problem("a component, not an output of a task", value.name, remedy)
    # Not only KFP's tasks: `restore_point` returns two of them as one.
    if isinstance(outputs := getattr(value, "outputs", None), Mapping):
        example = next((one for one in (REFERENCE_OUTPUT, *outputs) if one in outputs), None)
        remedy = f"Pass one of its outputs, such as {value.name}.outputs[{example!r}]"
        return Problem("a task, not an output of it", value.name, remedy if example else "It has no outputs")
    return None


def displayed(value: Any) -> str:
    """A value as the pipeline's author would recognise it."""
    if isinstance(value, PipelineChannel):
        return f"{value.task_name}.outputs[{value.name!r}]" if value.task_name else value.name
    if isinstance(value, str):
        return repr(with_channels_named(value))
    if isinstance(getattr(value, "outputs", None), Mapping):  # a task, or two of them as one
        return str(value.name)
    return "a list" if isinstance(value, list | tuple) else repr(value)


def with_channels_named(text: str) -> str:
    """A text with `{NAME}` for each channel, as an author writes it in an f-string."""
    return CHANNEL.sub(lambda match: f"{{{match['name']}}}", text)
