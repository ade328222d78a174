"""Reads a spec from options or keywords on this machine, by the rules of the annotations."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from podferry.contract.annotations import read_annotations
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.selection import list_of_globs
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.contract.variable_substitution import escape_variables
from podferry.sidecar.config.local_path import is_local_path
from podferry.sidecar.config.rank_env import launcher_rank, resolve_shard

PATH_KEYS = {"dataset": "dataset-path", "checkpoints": "checkpoint-path", "outputs": "output-path"}
"""Key of a source or destination -> key of its local directory."""
UNKNOWN = "unknown annotation"
ANNOTATION_KEY = lazy_pattern(re.escape(PREFIX) + r"([a-z-]+)(?:\.([a-z0-9-]+|NAME))?")
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
        return list_of_globs(map(str, value)) or None
    return None if value is None else str(value)


def local_spec(
    settings: Mapping[str, object], command: Sequence[str], base: Path, *, keywords: bool = False
) -> FerrySpec:
    """The spec of a run on this machine.

    Args:
        settings: See `annotations_of`; paths may be relative, and a shard may be `auto`.
        command: What runs: names the lineage unless the settings do.
        base: Parent of the directories that the settings do not name.
        keywords: The user wrote keywords of `ferry(...)`, and not options.

    Raises:
        InvalidSpec: Everything that is wrong, in terms of options or keywords.
    """
    name_of = keyword_of if keywords else option_of
    texts = annotations_of(settings)
    # Otherwise an unset variable in a script would mean the current directory.
    empty = [name for name, text in texts.items() if not text.strip()]
    InvalidSpec.raise_any(
        Problem(f"{name_of(name)} is empty", remedy="Give it a value, or leave it out") for name in empty
    )
    texts |= _absolute_paths(texts, base)
    shards = {name: text for name, text in texts.items() if name.partition(".")[0] == "shard"}
    texts |= {name: resolve_shard(text, os.environ, texts.get("world")) for name, text in shards.items()}
    if texts.get("restore", "").startswith((".", "~")):
        texts["restore"] = _absolute(texts["restore"])
    try:
        spec = read_annotations({PREFIX + name: escape_variables(text) for name, text in texts.items()})
    except InvalidSpec as error:
        raise InvalidSpec(*(renamed(problem, texts, name_of) for problem in error.problems)) from None
    if spec is not None and spec.mounted:
        mounted, remedy = spec.mounted[0], "Give the local directory of the data"
        what = f"{name_of(mounted.key('mode'))}: only a pod can mount a claim or an image"
        raise InvalidSpec.of(what, mounted.reference, remedy)
    if spec is None:
        given = ", ".join(map(name_of, PATH_KEYS))
        remedy = f"Give {given}, or several of them"
        raise InvalidSpec.of("neither a dataset nor a destination is given", remedy=remedy)
    if spec.world > 1:
        spec = msgspec.structs.replace(spec, rank=launcher_rank(os.environ, spec.world))
    if spec.lineage is None and (spec.checkpoints is not None or spec.outputs is not None):
        from podferry.sidecar.launch.local_run import lineage_of_run  # noqa: PLC0415 - a dataset has none

        return msgspec.structs.replace(spec, lineage=lineage_of_run(command, spec))
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
            paths[key] = text if "://" in text else _absolute_path(text)
    return paths


def _absolute(location: str) -> str:
    """Local paths may be relative on a command line; anything else is returned unchanged."""
    return _absolute_path(location) if is_local_path(location) else location


def _absolute_path(text: str) -> str:
    path = Path(text).expanduser().absolute()
    return str(path.resolve() if ".." in path.parts else path)


def renamed(problem: Problem, keys: Iterable[str], name_of: Callable[[str], str]) -> Problem:
    """A problem that names what the user wrote instead of annotations."""
    subject, _, rest = problem.what.partition(": ")
    if subject.removeprefix(PREFIX) in keys:  # even if it is no valid key
        problem = Problem(
            f"{name_of(subject.removeprefix(PREFIX))}: {rest}", problem.measured, problem.remedy
        )
    what, remedy = (
        ANNOTATION_KEY.sub(lambda match: name_of(match[0].removeprefix(PREFIX)), text)
        for text in (problem.what, problem.remedy)
    )
    if name_of is keyword_of and what.endswith(UNKNOWN):
        what, remedy = what.replace(UNKNOWN, "unknown keyword"), remedy.replace("-", "_")
    return Problem(what, problem.measured, remedy)


def keyword_of(key: str) -> str:
    """The keyword of `ferry(...)` for a key; for one dataset, its value in a mapping."""
    keyword, _, name = key.partition(".")
    keyword = keyword.replace("-", "_")
    return f"{keyword}[{name!r}]" if name else keyword


def option_of(key: str) -> str:
    """The option for a key; for one dataset, its value starts with the dataset's name."""
    option, _, name = key.partition(".")
    return f"--{option} {name}=" if name else f"--{option}"
