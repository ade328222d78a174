"""Checks the constants that a step gets when its pipeline is compiled, before KFP does; all problems at once.

Channels, texts with a channel in them, and placeholders are known only when the pipeline runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from kfp.dsl.pipeline_channel import PipelineChannel

from podferry.components.parsers import PARSERS, REQUIRED, parse_problems, text_problems
from podferry.components.task_arguments import no_output_problem
from podferry.components.training.gpu_train.input_refs import known_text
from podferry.contract.annotation_values import parse_lineage
from podferry.contract.errors import Problem

LEAST = MappingProxyType({"keep_local": 0, "shards": 1, "start_timeout": 0, "nodes": 1})
"""The smallest value of each argument that counts."""
OPTIONAL = frozenset(
    {
        *("secret", "source_secret", "destination_secret", "image", "checkpoints", "lineage", "lineages"),
        *("parameters", "trainer", "spec", "servers"),
    }
)
"""Arguments that may be None, which means that they are not given; KFP passes no None for the others."""


def constant_problems(arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """The problems of all arguments that have a name of `CHECKS`."""
    for name, value in arguments.items():
        if (problem := no_output_problem(value)) is not None:
            yield Problem(f"{name}: {problem.what}", problem.measured, problem.remedy)
        elif value is None:
            yield from _missing_problems(name)
        elif name in CHECKS and (known := _known(value)) is not None:
            yield from CHECKS[name](name, known)


def _missing_problems(name: str) -> Iterator[Problem]:
    """None for an argument that has another default, or none: KFP's own message would not name it."""
    if name in CHECKS and name not in OPTIONAL:
        required = name in REQUIRED or name in ("command", "worker")
        yield Problem(f"{name}: no value", "None", "Write one" if required else "Leave it out, or write one")


def _command_problems(name: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, list | tuple):
        remedy = "Write a list of words, or ['sh', '-c', TEXT] for a shell"
        yield Problem(f"{name}: not a list of words", repr(value), remedy)
    elif not value:
        yield Problem(f"{name}: no words", repr(value), "Write what the image has to run")
    else:
        yield from _value_problems(name, value)
        numbers = (at for at, word in enumerate(value) if isinstance(word, int | float))
        # KFP's numbers are doubles: 3 would be the word 3.0.
        yield from (
            Problem(f"{name}[{at}]: not a text", repr(value[at]), "Write it as a text") for at in numbers
        )


def _mapping_problems(name: str, value: Any) -> Iterator[Problem]:
    if isinstance(value, Mapping):
        yield from _value_problems(name, value)
    else:
        yield Problem(f"{name}: not a mapping", repr(value), "Write it as a dict")


def _value_problems(name: str, value: Any) -> Iterator[Problem]:
    """Everything in lists and mappings that KFP does not pass: its own message does not name the place."""
    if value is None:
        yield Problem(f"{name}: KFP passes no None", "", "Leave it out")
    elif (problem := no_output_problem(value)) is not None:
        yield Problem(f"{name}: {problem.what}", problem.measured, problem.remedy)
    elif isinstance(value, Mapping | list | tuple):
        members = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, one in members:
            yield from _value_problems(f"{name}[{key!r}]", one)
    elif not isinstance(value, str | int | float | PipelineChannel):
        remedy = "Pass a text, a number, a list or a dict"
        yield Problem(f"{name}: KFP passes no {type(value).__name__}", repr(value), remedy)


def _lineages_problems(name: str, value: Any) -> Iterator[Problem]:
    if isinstance(value, str):
        yield from _lineage_problems(name, value)
    elif not isinstance(value, list | tuple):
        yield Problem(f"{name}: not a list of lineages", repr(value), "Write a list of texts")
    else:
        for at, one in enumerate(value):
            yield from _lineage_problems(f"{name}[{at}]", one)


def _lineage_problems(name: str, value: Any) -> Iterator[Problem]:
    if (problem := no_output_problem(value)) is not None:
        yield Problem(f"{name}: {problem.what}", problem.measured, problem.remedy)
    elif not isinstance(value, str | PipelineChannel):
        yield Problem(f"{name}: not a text", repr(value), "Write the name of a lineage")
    elif known := _known(value):
        yield from parse_problems(name, parse_lineage, known)


def _flag_problems(name: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, bool):
        yield Problem(f"{name}: neither True nor False", repr(value), "Write True or False, without quotes")


def _count_problems(name: str, value: Any) -> Iterator[Problem]:
    least = LEAST[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        yield Problem(f"{name}: not an integer of {least} or more", repr(value), f"Write {least} or more")


def _known(value: Any) -> Any:
    """The value as far as its mistakes are known now; None for what is known only when the pipeline runs."""
    if isinstance(value, str):
        return known_text(value)
    return None if isinstance(value, PipelineChannel) else value


CHECKS: Mapping[str, Callable[[str, Any], Iterator[Problem]]] = MappingProxyType(
    {
        **dict.fromkeys(PARSERS, text_problems),
        **dict.fromkeys(("parameters", "trainer", "spec", "worker", "servers"), _mapping_problems),
        **dict.fromkeys(LEAST, _count_problems),
        **dict.fromkeys(
            (
                *("any_run", "full", "allow_doubtful", "delete", "size_only", "empty", "force"),
                *("disk", "wait"),
            ),
            _flag_problems,
        ),
        "command": _command_problems,
        "lineages": _lineages_problems,
    }
)
"""What is checked, by the argument's name."""
