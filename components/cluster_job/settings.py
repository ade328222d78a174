"""podferry's settings of a job's pods: keyword arguments of the pipeline become annotations in the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podferry.contract.annotation_keys import known_keys
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.kfp_inputs import render
from podferry.contract.spec import PREFIX
from podferry.contract.suggest import did_you_mean


def settings_of(function: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments as settings by key, without those that are None.

    `checkpoint_size` is `checkpoint-size`. A mapping has the setting of several datasets, by name; a list has
    globs.

    Raises:
        InvalidSpec: Every keyword that is no setting, with a suggestion; `function` was called with it.
    """
    flat = {
        f"{key}.{name}".rstrip(".").replace("_", "-"): "\n".join(one)
        if isinstance(one, list | tuple)
        else one
        for key, value in values.items()
        for name, one in (value if isinstance(value, Mapping) else {"": value}).items()
        if one is not None
    }
    known = known_keys(flat)
    names = [one.replace("-", "_") for one in known]
    InvalidSpec.raise_any(
        Problem(
            f"{key.replace('-', '_')}: {function} has no such setting",
            repr(value),
            did_you_mean(key.replace("-", "_"), names, f"Known: {', '.join(names)}"),
        )
        for key, value in flat.items()
        if key not in known
    )
    return flat


def annotations_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Annotations of the pods; an empty value is a setting that was not made."""
    texts = {key: render(value) for key, value in settings.items()}
    return {PREFIX + key: text for key, text in texts.items() if text}
