"""Reads a spec from options or keywords on this machine, by the rules of the annotations."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from podferry.contract.annotations import read_annotations
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lineage import local_lineage
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.contract.variable_substitution import escape_variables
from podferry.sidecar.config.rank_env import resolve_shard

PATH_KEYS = {"dataset": "dataset-path", "checkpoints": "checkpoint-path", "outputs": "output-path"}
"""Key of a source or destination -> key of its local directory."""
ANNOTATION_KEY = re.compile(re.escape(PREFIX) + r"([a-z-]+)(?:\.([a-z0-9-]+))?")
"""An annotation's key in a message."""


def annotations_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Keyword arguments as annotations without the prefix; leaves out those that are None.

    Args:
        settings: Annotation keys with `_` for `-`. A mapping holds values by dataset name, empty for the
            unnamed dataset; a list of globs becomes lines.
    """
    values = {
        f"{name}.{dataset}".rstrip("."): one
        for name, value in settings.items()
        for dataset, one in (value if isinstance(value, Mapping) else {"": value}).items()
    }
    texts = {name.replace("_", "-"): _text(value) for name, value in values.items()}
    return {name: text for name, text in texts.items() if text is not None}


def _text(value: object) -> str | None:
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value)) if value else None
    return None if value is None else str(value)


def local_spec(settings: Mapping[str, object], command: Sequence[str], base: Path) -> FerrySpec:
    """The spec of a run on this machine.

    Args:
        settings: See `annotations_of`; paths may be relative, and a shard may be `auto`.
        command: What runs: names the lineage unless the settings do.
        base: Parent of the directories that the settings do not name.

    Raises:
        InvalidSpec: Everything that is wrong, in terms of options.
    """
    texts = annotations_of(settings)
    # Otherwise an unset variable in a script would mean the current directory.
    empty = [name for name, text in texts.items() if not text.strip()]
    InvalidSpec.raise_any(
        Problem(f"{_option(name)} is empty", remedy="Give it a value, or leave it out") for name in empty
    )
    texts |= _absolute_paths(texts, base)
    shards = {name: text for name, text in texts.items() if name.partition(".")[0] == "shard"}
    texts |= {name: resolve_shard(text, os.environ, texts.get("world")) for name, text in shards.items()}
    if texts.get("restore", "").startswith((".", "~")):
        texts["restore"] = _absolute(texts["restore"])
    if "checkpoints" in texts or "outputs" in texts:
        texts.setdefault("lineage", local_lineage(command))
    try:
        spec = read_annotations({PREFIX + name: escape_variables(text) for name, text in texts.items()})
    except InvalidSpec as error:
        raise InvalidSpec(*map(_name_options, error.problems)) from None
    if spec is None:
        remedy = "Give --dataset, --checkpoints, --outputs, or several of them"
        raise InvalidSpec.of("neither a dataset nor a destination is given", remedy=remedy)
    return spec


def _absolute_paths(texts: Mapping[str, str], base: Path) -> dict[str, str]:
    """Absolute locations and local directories; a directory that is not given is below `base`."""
    paths = {}
    for key, text in texts.items():
        part, dot, name = key.partition(".")
        if part in PATH_KEYS:
            paths[key] = _absolute(text)
            paths.setdefault(f"{PATH_KEYS[part]}{dot}{name}", str(base / key))
        elif part in PATH_KEYS.values():
            paths[key] = _absolute(text)
    return paths


def _absolute(location: str) -> str:
    """Local paths may be relative on a command line; a URI is returned unchanged."""
    if "://" in location:
        return location
    path = Path(location).expanduser().absolute()
    return str(path.resolve() if ".." in path.parts else path)


def _name_options(problem: Problem) -> Problem:
    """A problem that names options instead of annotations."""
    what, remedy = (
        ANNOTATION_KEY.sub(lambda match: _option(match[0].removeprefix(PREFIX)), text)
        for text in (problem.what, problem.remedy)
    )
    return Problem(what, problem.measured, remedy)


def _option(key: str) -> str:
    """The option for a key; for one dataset, its value starts with the dataset's name."""
    option, _, name = key.partition(".")
    return f"--{option} {name}=" if name else f"--{option}"
