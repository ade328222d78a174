"""Finds the input of a task that carries an output, so that an annotation can refer to it.

KFP does not resolve outputs in annotations: it compiles them into meaningless text. The webhook resolves
`$(inputs.NAME)` from the pod's command instead, so each output must also be an input of the task.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp.dsl.pipeline_channel import PipelineArtifactChannel, PipelineChannel, PipelineParameterChannel

from podferry.components.task_arguments import (
    CHANNEL,
    REFERENCE_OUTPUT,
    displayed,
    no_output_problem,
    with_channels_named,
)
from podferry.contract.errors import Problem
from podferry.contract.kfp_inputs import render

LOCATIONS = ("dataset", "checkpoints", "outputs")
"""Settings that are locations."""
PLACEHOLDER_START = "{{"
"""Start of KFP's and Argo's placeholders, which mean nothing in an annotation."""
RUN_PLACEHOLDER = re.compile(r"\{\{\$[^{}]*\}\}")
"""A placeholder for a value of the run, such as its id: KFP fills it in where it is the entire value."""


@dataclass(frozen=True, slots=True)
class TaskInputs:
    """The inputs of a task call.

    Attributes:
        names: All inputs that the component declares.
        carried: The input's name by the text of its channel or f-string.
        dynamic: Inputs whose value is known only when the pipeline runs.
        constants: Inputs whose value is known when the pipeline is compiled, as text.
        channels: Inputs that are exactly one channel.
        taken: `$(inputs.NAME)` by the settings that `gpu_train` takes from inputs of the same name.
    """

    names: tuple[str, ...]
    carried: Mapping[str, str]
    dynamic: tuple[str, ...]
    constants: Mapping[str, str]
    channels: Mapping[str, Any]
    taken: Mapping[str, str]

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Inputs that are artifacts of another task."""
        return tuple(n for n, one in self.channels.items() if isinstance(one, PipelineArtifactChannel))

    def carries_reference(self, name: str) -> bool:
        """Whether the parameter `name`, or for an artifact any parameter, gets a frozen reference."""
        channel = self.channels.get(name)
        if isinstance(channel, PipelineArtifactChannel):
            return any(map(_is_reference, self.channels.values()))
        return _is_reference(channel)


def inputs_of(task: Any) -> TaskInputs:
    """Return the inputs of a task."""
    declared = task.component_spec.inputs or {}
    defaults = {name: one.default for name, one in declared.items() if one.default is not None}
    values = {name: value for name, value in {**defaults, **task.inputs}.items() if value is not None}
    texts = {name: text_of(value) for name, value in values.items()}
    known = {name: known_text(text) for name, text in texts.items()}
    return TaskInputs(
        names=tuple(declared),
        carried={text: name for name, text in texts.items() if PLACEHOLDER_START in text},
        dynamic=tuple(name for name, text in known.items() if text is None),
        constants={name: text for name, text in known.items() if text is not None},
        channels={name: value for name, value in values.items() if isinstance(value, PipelineChannel)},
        taken={
            name: f"$(inputs.{name})"
            for name in LOCATIONS
            if texts.get(name) and name in declared and _is_location(name, declared[name].type, values[name])
        },
    )


def known_text(text: str) -> str | None:
    """A text whose mistakes are known when the pipeline is compiled, with channels by name, or else None.

    One that contains a run's placeholder, and more, is known: KFP never fills it in.
    """
    if PLACEHOLDER_START not in text:
        return text
    legible = with_channels_named(text)
    return None if RUN_PLACEHOLDER.fullmatch(text) or not RUN_PLACEHOLDER.search(legible) else legible


def _is_location(name: str, kind: Any, value: Any) -> bool:
    """Whether an input with the name of a location is one: a text, or the artifact of a dataset."""
    return kind == "String" or (name == "dataset" and isinstance(value, PipelineArtifactChannel))


def annotation_text(value: Any, inputs: TaskInputs) -> tuple[str | None, Problem | None]:
    """Convert a setting's value to the text of an annotation, which refers to the task's inputs.

    The value may be a number, a path, a channel, or an f-string with channels. `$(…)` in a text is kept. Both
    results are None if an input must be added for the value. The second says why no input can carry it.
    """
    if (problem := no_output_problem(value)) is not None:
        return None, problem
    text = os.fspath(value) if isinstance(value, os.PathLike) else text_of(value)
    if text in inputs.carried:
        return f"$(inputs.{inputs.carried[text]})", None
    text = CHANNEL.sub(lambda match: _input_reference(match[0], inputs), text)
    if isinstance(value, PipelineArtifactChannel):
        remedy = (
            f"Pass the output {REFERENCE_OUTPUT!r}, a parameter, or give the task an input for the artifact"
        )
        return None, Problem("no input of the task carries the artifact", displayed(value), remedy)
    if CHANNEL.search(text):
        return None, None
    if PLACEHOLDER_START in text:
        remedy = "Use $(pipeline), $(task), $(inputs.NAME) and the like: KFP resolves none in an annotation"
        return None, Problem("a placeholder cannot be used in an annotation", text, remedy)
    return text, None


def _is_reference(channel: Any) -> bool:
    """Whether it is the `reference` output of a task; an argument of the pipeline may be any URI."""
    parameter = isinstance(channel, PipelineParameterChannel)
    return parameter and channel.name == REFERENCE_OUTPUT and bool(channel.task_name)


def text_of(value: Any) -> str:
    """A value as the task has it: a channel's pattern, or a constant as KFP's launcher renders it."""
    if isinstance(value, PipelineChannel):
        return str(value.pattern)
    if isinstance(value, list | tuple):
        return render([_pattern(item) for item in value])
    if isinstance(value, dict):
        return render({name: _pattern(item) for name, item in value.items()})
    return render(value)


def _pattern(item: Any) -> Any:
    return str(item.pattern) if isinstance(item, PipelineChannel) else item


def _input_reference(text: str, inputs: TaskInputs) -> str:
    return f"$(inputs.{inputs.carried[text]})" if text in inputs.carried else text
