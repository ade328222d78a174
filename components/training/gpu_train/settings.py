"""Converts the settings of `gpu_train` to annotations, and to inputs that the task lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kfp.dsl.pipeline_channel import PipelineChannel, extract_pipeline_channels_from_any

from podferry.components.step import is_absent, setting_text
from podferry.components.task_arguments import CHANNEL, displayed
from podferry.components.training.gpu_train.input_refs import (
    LOCATIONS,
    TaskInputs,
    annotation_text,
    text_of,
)
from podferry.components.training.gpu_train.undeclared_inputs import undeclared_name
from podferry.components.training.gpu_train.validate import annotation_problems
from podferry.contract.annotation_keys import known_keys
from podferry.contract.errors import Problem
from podferry.contract.spec import PREFIX
from podferry.contract.suggest import did_you_mean
from podferry.contract.variable_substitution import INPUT_PREFIX, TOKEN
from podferry.sidecar.launch.local_spec import renamed

ENTIRE_INPUT = re.compile(rf"\$\({re.escape(INPUT_PREFIX)}[^()]+\)")
NUMBERS = frozenset({"Integer", "Float", "Boolean"})
"""KFP's types of outputs that are no text."""
RESOURCES = ("gpus", "memory", "accelerator")
"""Keywords of `gpu_train` that are no annotations."""
REFUSED = "refused"
"""Replaces a value that was refused, so that the others are validated as if it were there."""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """What `gpu_train` sets on a task.

    Attributes:
        annotations: Of its pod.
        added: Values by the name of the undeclared input that carries them.
        problems: All errors.
    """

    annotations: dict[str, str] = field(default_factory=dict)
    added: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_settings(settings: Mapping[str, Any], inputs: TaskInputs) -> ReadSettings:
    """Convert keyword arguments; None and an empty text mean that a setting is not given."""
    values = {name: value for name, value in _flatten(settings).items() if not is_absent(value)}
    read = ReadSettings()
    keys = known_keys(name.replace("_", "-") for name in values)
    for name, value in values.items():
        if name.replace("_", "-") in keys:
            _read_setting(name, value, inputs, read)
        else:
            known = [*RESOURCES, *(one.replace("-", "_") for one in keys)]
            remedy = did_you_mean(name, known, f"Known: {', '.join(known)}")
            read.problems.append(Problem(f"{name}: gpu_train has no such setting", displayed(value), remedy))
    read.problems.extend(_validate(read, values, inputs))
    return read


def _read_setting(name: str, value: Any, inputs: TaskInputs, read: ReadSettings) -> None:
    text, problem = annotation_text(value, inputs)
    if isinstance(value, list | tuple):  # lists of globs are one text already
        problem = Problem("not a text", repr(value), "Write it as a text; only globs may be a list of texts")
    if name.partition(".")[0] in LOCATIONS and getattr(value, "channel_type", "") in NUMBERS:
        remedy = "Pass a text: a URI or a reference"
        problem = Problem(f"an output of type {value.channel_type}", displayed(value), remedy)
    if problem is not None:
        read.problems.append(Problem(f"{name}: {problem.what}", problem.measured, problem.remedy))
        return
    added = undeclared_name(name)
    if text is None and isinstance(value, str) and TOKEN.search(value):
        text = _in_parts(added, value, inputs, read)
    if text is None:
        read.added[added] = value if isinstance(value, PipelineChannel) else text_of(value)
        text = f"$({INPUT_PREFIX}{added})"
    elif name.partition(".")[0] in LOCATIONS and not ENTIRE_INPUT.fullmatch(text):
        # KFP's cache compares no annotations: training for another location must not be answered from it.
        read.added[added] = text
    read.annotations[PREFIX + name.replace("_", "-")] = text


def _in_parts(added: str, text: str, inputs: TaskInputs, read: ReadSettings) -> str:
    """Give each channel in a text with variables an input: the webhook expands none in an input's value."""
    names = dict(inputs.carried)
    # KFP's order differs from run to run.
    for channel in sorted(extract_pipeline_channels_from_any(text), key=lambda one: text.index(one.pattern)):
        if channel.pattern not in names:
            name = names[channel.pattern] = f"{added}__PART{1 + len(names) - len(inputs.carried)}"
            read.added[name] = channel
    return CHANNEL.sub(lambda match: f"$({INPUT_PREFIX}{names[match[0]]})", text)


def _flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten mappings by dataset name: `include` of the dataset `test` becomes `include.test`."""
    return {
        f"{setting}.{name}".rstrip("."): setting_text(setting, one)
        for setting, value in values.items()
        for name, one in (value if isinstance(value, Mapping) else {"": value}).items()
    }


def _validate(read: ReadSettings, values: Mapping[str, Any], inputs: TaskInputs) -> list[Problem]:
    """Validate the annotations, with placeholders for values that were refused already."""
    refused = {name.replace("_", "-") for name in values}
    refused -= {key.removeprefix(PREFIX) for key in read.annotations}
    placeholders = {
        PREFIX + name: f"$({INPUT_PREFIX}{REFUSED})" for name in refused if name in known_keys(refused)
    }
    if not read.annotations and not refused:
        what = "gpu_train has neither a dataset nor a destination"
        remedy = "Give dataset=, checkpoints= or outputs=, or set the GPUs on the task itself"
        return [Problem(what, "", remedy)]
    known = replace(inputs, dynamic=(*inputs.dynamic, *read.added, REFUSED))
    keys = [key.removeprefix(PREFIX) for key in read.annotations]
    found = annotation_problems({**read.annotations, **placeholders}, known)
    return [renamed(problem, keys, _keyword) for problem in found]


def _keyword(key: str) -> str:
    """The keyword for an annotation's key; of a named dataset's, with the name."""
    setting, dot, name = key.partition(".")
    return f"{setting.replace('-', '_')}{dot}{name}"
