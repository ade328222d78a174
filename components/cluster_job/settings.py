"""podferry's settings of a job's pods: keyword arguments of the pipeline become annotations in the step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from podferry.contract.annotation_keys import AnnotationKey, known_keys
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.kfp_inputs import render
from podferry.contract.spec import PREFIX
from podferry.contract.suggest import did_you_mean

CHANNEL = "{{channel:"
"""Begins a channel in a text, as KFP writes it while it compiles."""


def settings_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments as settings by key, without those that are None.

    `checkpoint_size` is `checkpoint-size`. A mapping has the setting of several datasets, by name; a list has
    globs.
    """
    # Imported on call: the step, which reads settings only, does not load kfp.
    from podferry.components.step import setting_text  # noqa: PLC0415

    return {
        f"{key}.{name}".rstrip(".").replace("_", "-"): setting_text(key, one)
        for key, value in values.items()
        for name, one in (value if isinstance(value, Mapping) else {"": value}).items()
        if one is not None
    }


def setting_problems(function: str, settings: Mapping[str, Any]) -> Iterator[Problem]:
    """Every setting that there is not, with a suggestion, and every constant that is invalid.

    Args:
        function: What was called with them, as its caller knows it.
        settings: By key, see `settings_of`.
    """
    known = known_keys(settings)
    names = [one.replace("-", "_") for one in known]
    for key, value in settings.items():
        name = key.replace("-", "_")
        if key not in known:
            remedy = did_you_mean(name, names, f"Known: {', '.join(names)}")
            yield Problem(f"{name}: {function} has no such setting", repr(value), remedy)
        elif isinstance(value, list | tuple):  # lists of globs are one text already
            yield Problem(
                f"{name}: not a text", repr(value), "Write it as a text; only globs may be a list of texts"
            )
        elif isinstance(value, str | int | float) and value != "":
            yield from _value_problems(name, known[key], render(value))


def _value_problems(name: str, key: AnnotationKey, text: str) -> Iterator[Problem]:
    """Those of a text without variables and channels."""
    if "$(" in text or CHANNEL in text:
        return
    try:
        key.parse(text)
    except InvalidSpec as error:
        yield from (Problem(f"{name}: {one.what}", one.measured, one.remedy) for one in error.problems)


def annotations_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Annotations of the pods; an empty value is a setting that was not made."""
    texts = {key: render(value) for key, value in settings.items()}
    return {PREFIX + key: text for key, text in texts.items() if text}
