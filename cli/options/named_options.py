"""Options for several datasets: `NAME=VALUE` applies to the dataset NAME, `VALUE` to the unnamed one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import click

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.spec import DATASET_NAME

Verb = TypeVar("Verb", bound=Callable[..., Any])

CREATED = "created if missing.  [default: a temporary directory in memory]"
DATASET_OPTIONS = (
    "dataset",
    "dataset_path",
    "include",
    "exclude",
    "file_mode",
    "unpack",
    "shard",
    "dataset_secret_dir",
)
NAMED_VALUE = re.compile(rf"(?P<name>{DATASET_NAME})=(?P<value>.*)", re.DOTALL)
REPEATABLE_OPTIONS = frozenset({"include", "exclude"})
"""Options that may be given several times for one dataset."""


def dataset_options(verb: Verb) -> Verb:
    """Add `DATASET_OPTIONS` to a verb; each takes `VALUE` or `NAME=VALUE`."""
    repeated = partial(click.option, multiple=True)
    options = (
        repeated(
            "--dataset",
            metavar="[NAME=]URI",
            help="Dataset to stage: a URI, a reference, or a path. Repeat with names for several datasets; "
            "the next seven options take names too: --dataset test=./t --include test=*.jpg.",
        ),
        repeated("--dataset-path", metavar="DIRECTORY", help=f"Where training reads it, {CREATED}"),
        repeated("--include", metavar="GLOB", help="Only these files, such as *.jpg. Repeatable."),
        repeated("--exclude", metavar="GLOB", help="Not these files. Repeatable."),
        repeated("--file-mode", metavar="MODE", help="Mode of the files.  [default: 0644]"),
        repeated(
            "--unpack",
            metavar="WHEN",
            help="Unpack archives: auto (only packs made by `podferry dataset pack`), never, or always.  "
            "[default: auto]",
        ),
        repeated("--shard", metavar="RANK/COUNT", help="Only one shard; auto takes the launcher's rank."),
        repeated("--dataset-secret-dir", metavar="DIRECTORY", help="--secret-dir for the dataset only."),
    )
    return add_options(verb, options)


def add_options(verb: Verb, options: Sequence[Callable[[Verb], Verb]]) -> Verb:
    """Add options to a verb; its help lists them in this order."""
    for option in reversed(options):
        verb = option(verb)
    return verb


def split_dataset_name(text: str) -> tuple[str, str]:
    """Split `NAME=VALUE` into the dataset's name (empty for the unnamed dataset) and the value."""
    match = NAMED_VALUE.fullmatch(text)
    return (match["name"], match["value"]) if match else ("", text)


def group_by_dataset(options: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Group the values of repeated options, `dataset` included and each in the order given, by dataset name.

    A path or a glob may contain `=` as well (`year=2024/*`), so the text before it counts as a name only if
    `dataset` defines that name.

    Raises:
        InvalidSpec: Datasets with two values for an option that takes one, all of them at once.
    """
    names = {split_dataset_name(text)[0] for text in options["dataset"]}
    grouped = {option: _group_values(texts, names) for option, texts in options.items()}
    InvalidSpec.raise_any(one for option, groups in grouped.items() for one in _duplicates(option, groups))
    return {
        option: {
            name: values if option in REPEATABLE_OPTIONS else values[0] for name, values in groups.items()
        }
        for option, groups in grouped.items()
    }


def _group_values(texts: Iterable[str], names: set[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for text in texts:
        name, value = split_dataset_name(text)
        if name not in names:
            name, value = "", text
        groups.setdefault(name, []).append(value)
    return groups


def _duplicates(option: str, groups: Mapping[str, list[str]]) -> Iterable[Problem]:
    if option in REPEATABLE_OPTIONS:
        return
    for name, values in groups.items():
        if len(values) > 1:
            flag = f"--{option.replace('_', '-')}"
            what = f"{flag} is given twice for {f'the dataset {name}' if name else 'one dataset'}"
            remedy = f"Name the datasets: {flag} train=… {flag} test=…"
            yield Problem(what, ", ".join(map(repr, values)), remedy)
