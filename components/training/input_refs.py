"""What a task's annotations may refer to: which of its inputs carries which output or f-string.

KFP resolves no output in an annotation, and compiles one that is put there into dead text. The webhook
resolves `$(inputs.NAME)` from the pod's own command instead, so each output has to come in as an input.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp.dsl.pipeline_channel import PipelineArtifactChannel, PipelineChannel, PipelineParameterChannel

from podferry.contract.errors import Problem
from podferry.contract.kfp_inputs import render

CHANNEL = re.compile(r"\{\{channel:task=(?P<task>[^;]*);name=(?P<name>[^;]*);type=.*?;\}\}")
"""How KFP writes a channel in a text while it compiles."""
REFERENCE = "reference"
"""The output of our steps that holds a frozen reference."""
UNRESOLVED = "{{"
"""Begins KFP's and Argo's own placeholders, which mean nothing in an annotation."""


@dataclass(frozen=True, slots=True)
class TaskInputs:
    """The inputs of a task, as it was called.

    Attributes:
        names: All that its component declares.
        carried: The input's name by the text of the channel or f-string that it was given.
        dynamic: Those whose value is known when the pipeline runs.
        constants: Those whose value is known when the pipeline is compiled, as text.
        channels: Those that are a channel as a whole.
    """

    names: tuple[str, ...]
    carried: Mapping[str, str]
    dynamic: tuple[str, ...]
    constants: Mapping[str, str]
    channels: Mapping[str, Any]

    def carries_reference(self, name: str) -> bool:
        """Whether a frozen reference reaches the parameter `name`, or one beside the artifact `name`."""
        channel = self.channels.get(name)
        if isinstance(channel, PipelineArtifactChannel):
            return any(map(_is_reference, self.channels.values()))
        return _is_reference(channel)


def inputs_of(task: Any) -> TaskInputs:
    """The inputs of a task."""
    declared = task.component_spec.inputs or {}
    defaults = {name: one.default for name, one in declared.items() if one.default is not None}
    given = {name: value for name, value in {**defaults, **task.inputs}.items() if value is not None}
    texts = {name: _text(value) for name, value in given.items()}
    return TaskInputs(
        names=tuple(declared),
        carried={text: name for name, text in texts.items() if UNRESOLVED in text},
        dynamic=tuple(name for name, text in texts.items() if UNRESOLVED in text),
        constants={name: text for name, text in texts.items() if UNRESOLVED not in text},
        channels={name: value for name, value in given.items() if isinstance(value, PipelineChannel)},
    )


def annotation_text(value: Any, inputs: TaskInputs) -> tuple[str, Problem | None]:
    """A wish's value as an annotation's text, and why it cannot be one.

    Args:
        value: A text, a number, a path, a channel, or an f-string with channels in it. `$(…)` in a text is a
            variable and stays.
        inputs: Of the task that gets the annotation.
    """
    text = os.fspath(value) if isinstance(value, os.PathLike) else _text(value)
    if text in inputs.carried:
        return f"$(inputs.{inputs.carried[text]})", None
    text = CHANNEL.sub(lambda match: _reference(match[0], inputs), text)
    loose = [_shown(match) for match in CHANNEL.finditer(text)]
    if loose:
        remedy = f"Give the task an input and pass {loose[0]} there too: KFP resolves none in an annotation"
        return text, Problem("no input of the task carries the value", ", ".join(loose), remedy)
    if UNRESOLVED in text:
        remedy = "Use $(pipeline), $(task), $(inputs.NAME) and the like: KFP resolves none in an annotation"
        return text, Problem("a placeholder cannot stand in an annotation", text, remedy)
    return text, None


def _is_reference(channel: Any) -> bool:
    """Whether it is the `reference` that a task hands on; a pipeline's own argument may be any URI."""
    parameter = isinstance(channel, PipelineParameterChannel)
    return parameter and channel.name == REFERENCE and bool(channel.task_name)


def _text(value: Any) -> str:
    """A value as it stands in the task: a channel's pattern, or a constant as KFP's launcher shows it."""
    return str(value.pattern) if isinstance(value, PipelineChannel) else _render(value)


def _render(value: Any) -> str:
    """As `render`, with channels that lie in lists and dicts."""
    if isinstance(value, PipelineChannel):
        return str(value.pattern)
    if isinstance(value, list | tuple):
        return render([_render(item) if isinstance(item, PipelineChannel) else item for item in value])
    if isinstance(value, dict):
        return render(
            {
                name: _render(item) if isinstance(item, PipelineChannel) else item
                for name, item in value.items()
            }
        )
    return render(value)


def _reference(text: str, inputs: TaskInputs) -> str:
    return f"$(inputs.{inputs.carried[text]})" if text in inputs.carried else text


def _shown(match: re.Match[str]) -> str:
    """A channel as its author wrote it."""
    return f"{match['task']}.outputs[{match['name']!r}]" if match["task"] else match["name"]
