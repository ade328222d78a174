"""How the texts that steps take are parsed. Loads nothing of kfp, for the steps themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from podferry.cache.manifests.cache_spec import (
    parse_cache_name,
    parse_label,
    parse_node_directory,
    parse_rate,
    parse_readers,
)
from podferry.contract.annotation_keys import KEYS
from podferry.contract.annotation_values import (
    SUBDOMAIN,
    parse_destination,
    parse_endpoint,
    parse_lineage,
    parse_region,
    parse_secret,
    parse_size,
)
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.file_names import name_problem
from podferry.contract.quantity import parse_seconds
from podferry.contract.selection import parse_globs

Parser = Callable[[str], object]
IMAGE = re.compile(r"\S+")


def _parse_image(text: str) -> str:
    if IMAGE.fullmatch(text) is None:
        remedy = "Write REGISTRY/NAME:TAG, without blanks"
        raise InvalidSpec.of("not the name of an image", repr(text), remedy)
    return text


def _parse_name(text: str) -> str:
    if SUBDOMAIN.fullmatch(text) is None:
        raise InvalidSpec.of("not the name of an object", repr(text), "Write only a-z, 0-9, '-' and '.'")
    return text


def _parse_paths(text: str) -> tuple[str, ...]:
    paths = tuple(filter(None, text.splitlines()))
    problems = (name_problem(path.rstrip("/")) for path in paths)
    InvalidSpec.raise_any(one for one in problems if one is not None)
    if not paths:
        raise InvalidSpec.of("no path", repr(text), "Write paths relative to the source, one a line")
    return paths


def _each(parse: Parser) -> Parser:
    """A parser of several texts with blanks between them."""

    def parse_all(text: str) -> None:
        problems: list[Problem] = []
        for word in text.split():
            try:
                parse(word)
            except InvalidSpec as error:
                problems += error.problems
        InvalidSpec.raise_any(problems)

    return parse_all


PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        **dict.fromkeys(("uri", "reference", "source"), parse_reference),
        **dict.fromkeys(("to", "destination", "checkpoints"), parse_destination),
        **dict.fromkeys(("include", "exclude"), parse_globs),
        **dict.fromkeys(("fits", "dataset_size", "checkpoint_size", "size"), parse_size),
        **dict.fromkeys(("train_memory", "shm_size", "pod_memory"), parse_size),
        **dict.fromkeys(("secret", "source_secret", "destination_secret"), parse_secret),
        **dict.fromkeys(
            ("endpoint", "to_endpoint", "source_endpoint", "destination_endpoint"), parse_endpoint
        ),
        **dict.fromkeys(("region", "to_region", "source_region", "destination_region"), parse_region),
        **dict.fromkeys(("runtime", "target", "namespace", "node"), _parse_name),
        "cache": parse_cache_name,
        "paths": _parse_paths,
        "lineage": parse_lineage,
        "medium": KEYS["medium"].parse,
        "unpack": KEYS["unpack"].parse,
        **dict.fromkeys(("image", "holder_image"), _parse_image),
        "readers": _each(parse_readers),
        "selector": _each(parse_label),
        "shared": parse_node_directory,
        "max_rate": parse_rate,
        "refresh": parse_seconds,
    }
)
"""How the steps' arguments are parsed: the same name means the same in all steps."""
REQUIRED = frozenset(
    {
        *("uri", "reference", "source", "to", "destination", "image", "runtime", "target"),
        *("cache", "namespace", "paths"),
    }
)
"""Arguments for which an empty text is an error; for the others it means that they are not given."""


def refuse_invalid(**texts: str) -> None:
    """Raise `InvalidSpec` with the problems of all inputs of a step, by name, in its run."""
    InvalidSpec.raise_any(problem for name, text in texts.items() for problem in text_problems(name, text))


def text_problems(name: str, value: Any) -> Iterator[Problem]:
    """The problems of an argument with a name of `PARSERS`."""
    if not isinstance(value, str):
        yield Problem(f"{name}: not a text", repr(value), "Write it as a text")
    elif value or name in REQUIRED:
        yield from parse_problems(name, PARSERS[name], value)


def parse_problems(name: str, parse: Parser, text: str) -> Iterator[Problem]:
    """The problems of a text, with the argument's name."""
    try:
        parse(text)
    except InvalidSpec as error:
        yield from (Problem(f"{name}: {one.what}", one.measured, one.remedy) for one in error.problems)
