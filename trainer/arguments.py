"""Checks what `ferry` is given before an agent sees it: values of KFP that are no location.

The same rules apply with an injected agent and with one of this process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from podferry.contract.errors import Problem
from podferry.contract.kfp_inputs import REFERENCE_KEY
from podferry.contract.status import Status
from podferry.contract.uri import KFP_PLACEHOLDER, KFP_REMEDY, parse_uri
from podferry.contract.variable_substitution import INPUT_PREFIX


class Artifact(Protocol):
    """An artifact of KFP, as a component's function gets it."""

    uri: str
    metadata: dict[str, Any]


Location = str | os.PathLike[str]
FUNCTION_FLAG = "--function_to_execute"
"""Of KFP's executor, which calls the function of a component."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
JSON_START = ("[", "{")
PLACEHOLDER = "{{"
"""How KFP's channels and placeholders begin."""
VARIABLE = re.compile(rf"\$\({re.escape(INPUT_PREFIX)}[^)]*\)")
REPLACED = "KFP's local runner replaces outputs inside ParallelFor by the loop's item: see docs/kfp.md"


def located(value: Any) -> Any:
    """A location, or a mapping of them; a KFP artifact is the dataset that it names, or its URI."""
    if isinstance(value, Mapping):
        return {name: located(one) for name, one in value.items()}
    if isinstance(metadata := getattr(value, "metadata", None), Mapping) and hasattr(value, "uri"):
        return str(metadata.get(REFERENCE_KEY) or value.uri)
    return value


def argument_problems(arguments: Mapping[str, object], *, kfp_step: bool) -> Iterator[Problem]:
    """Why arguments of `ferry` are no locations.

    Args:
        arguments: By keyword; None is left out, and a mapping has values by dataset name.
        kfp_step: Whether KFP started this process: there a relative path that does not exist is no dataset.
    """
    for keyword, value in arguments.items():
        for name, one in (value if isinstance(value, Mapping) else {"": value}).items():
            if one is not None:
                problem = _problem(f"{keyword}.{name}".rstrip("."), one, kfp_step=kfp_step)
                yield from () if problem is None else (problem,)


def disagreements(
    status: Status, dataset: Location | Mapping[str, Location] | None, checkpoints: Location | None
) -> Iterator[Problem]:
    """Compare the arguments with an injected agent, which follows the pod's annotations."""
    requested = dataset if isinstance(dataset, Mapping) else {"": dataset}
    staged = {one.name: one.uri for one in status.datasets}
    pairs = [(f"dataset.{name}".rstrip("."), place, staged.get(name)) for name, place in requested.items()]
    pairs.append(("checkpoints", checkpoints, status.checkpoints.uri if status.checkpoints else None))
    for name, wanted, present in pairs:
        if wanted is not None and (present is None or _canonical(str(wanted)) != _canonical(present)):
            measured = f"the code requests {wanted}, the agent has {present or 'none'}"
            remedy = f"Set podferry.io/{name} to the value in the code, or remove it from the code"
            yield Problem(f"the injected agent has another {name}", measured, remedy)


def _canonical(text: str) -> str:
    """A URI or reference in its canonical form, without its fragment."""
    return str(parse_uri(text.partition("#")[0]))


def _problem(name: str, value: object, *, kfp_step: bool) -> Problem | None:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        return _no_location(name, str(text), type(text).__name__)
    if PLACEHOLDER in text:
        undeclared = "Declare an input of the component, pass the value there, and give that input to ferry"
        remedy = KFP_REMEDY if KFP_PLACEHOLDER in text else undeclared
        return Problem(f"the {name} is {text}, which KFP has not filled in", remedy=remedy)
    if VARIABLE.search(text):
        remedy = (
            "Give ferry the value of the component's input: only the pod's annotations resolve $(inputs.…)"
        )
        return Problem(f"the {name} is {text}, which is not resolved", remedy=remedy)
    if not _may_be_location(name, text, kfp_step=kfp_step):
        return _no_location(name, text)
    return None


def _may_be_location(name: str, text: str, *, kfp_step: bool) -> bool:
    if "/" in text or not text.strip() or Path(text).exists():
        return True
    unknown = kfp_step and name.startswith("dataset")
    return not (unknown or NUMBER.fullmatch(text.strip()) or text.lstrip().startswith(JSON_START))


def _no_location(name: str, text: str, kind: str = "") -> Problem:
    what = f"the {name} is {text}, which is no URI and no path"
    return Problem(what, kind, f"Pass a URI such as s3://bucket/{name}. {REPLACED}")
