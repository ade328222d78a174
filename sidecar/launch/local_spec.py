"""What is asked for on this machine, as options or keywords, becomes a spec by the annotations' own rules."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from podferry.contract.annotations import read_annotations
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lineage import local_lineage
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.contract.substitution import escape_variables
from podferry.sidecar.config.rank_env import shard_text

PARTS = {"dataset": "dataset-path", "checkpoints": "checkpoint-path", "outputs": "output-path"}
"""Which key names the directory of which."""
OPTION = re.compile(re.escape(PREFIX) + r"([a-z-]+)(?:\.([a-z0-9-]+))?")
"""An annotation's key in a message."""


def settings(options: Mapping[str, object]) -> dict[str, str]:
    """Keyword arguments as annotations without the prefix; those that are None are left out.

    Args:
        options: The annotations' keys with `_` for `-`. A mapping holds values by the datasets' names, where
            the empty name is that of the dataset that has none; a list of globs becomes their text.
    """
    named = {
        f"{name}.{dataset}".rstrip("."): one
        for name, value in options.items()
        for dataset, one in (value if isinstance(value, Mapping) else {"": value}).items()
    }
    texts = {name.replace("_", "-"): _text(value) for name, value in named.items()}
    return {name: text for name, text in texts.items() if text is not None}


def _text(value: object) -> str | None:
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value)) if value else None
    return None if value is None else str(value)


def local_spec(options: Mapping[str, object], command: Sequence[str], base: Path) -> FerrySpec:
    """The spec of a run on this machine.

    Args:
        options: See `settings`; paths may be relative, and a shard may be `auto`.
        command: What runs: names the lineage where the options do not.
        base: Directory for what the options do not place.

    Raises:
        InvalidSpec: Everything that is wrong, named as options.
    """
    given = settings(options)
    # An unset variable in a script would else mean the present directory.
    empty = [name for name, text in given.items() if not text.strip()]
    InvalidSpec.raise_any(
        Problem(f"{_option(name)} is empty", remedy="Give it a value, or leave it out") for name in empty
    )
    given |= _placed(given, base)
    shards = {name: text for name, text in given.items() if name.partition(".")[0] == "shard"}
    given |= {name: shard_text(text, os.environ, given.get("world")) for name, text in shards.items()}
    if given.get("restore", "").startswith((".", "~")):
        given["restore"] = _absolute(given["restore"])
    if "checkpoints" in given or "outputs" in given:
        given.setdefault("lineage", local_lineage(command))
    try:
        spec = read_annotations({PREFIX + name: escape_variables(text) for name, text in given.items()})
    except InvalidSpec as error:
        raise InvalidSpec(*map(_as_option, error.problems)) from None
    if spec is None:
        remedy = "Give --dataset, --checkpoints, --outputs, or several of them"
        raise InvalidSpec.of("neither a dataset nor a destination is given", remedy=remedy)
    return spec


def _placed(given: Mapping[str, str], base: Path) -> dict[str, str]:
    """Places and paths as absolute ones, each part's path below `base` where there is none."""
    placed = {}
    for key, text in given.items():
        part, dot, name = key.partition(".")
        if part in PARTS:
            placed[key] = _absolute(text)
            placed.setdefault(f"{PARTS[part]}{dot}{name}", str(base / key))
        elif part in PARTS.values():
            placed[key] = _absolute(text)
    return placed


def _absolute(place: str) -> str:
    """A path of local files may be relative on a command line; a URI is left as it is."""
    if "://" in place:
        return place
    path = Path(place).expanduser().absolute()
    return str(path.resolve() if ".." in path.parts else path)


def _as_option(problem: Problem) -> Problem:
    what, remedy = (OPTION.sub(_spelled, text) for text in (problem.what, problem.remedy))
    return Problem(what, problem.measured, remedy)


def _spelled(match: re.Match[str]) -> str:
    return _option(match[0].removeprefix(PREFIX))


def _option(key: str) -> str:
    """A key as an option: that of one dataset begins its value with the dataset's name."""
    option, _, name = key.partition(".")
    return f"--{option} {name}=" if name else f"--{option}"
