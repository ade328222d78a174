"""Reads a dataset from the arguments URI and DIRECTORY of a command, and names these in what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.spec import DatasetSpec
from podferry.sidecar.launch.local_spec import local_spec

DIRECTORY = "DIRECTORY"
PATH_OPTION, URI_OPTION = lazy_pattern(r"--dataset-path\b"), lazy_pattern(r"--dataset(?![\w-])")
"""What `podferry run` calls them."""


def dataset_of_arguments(settings: Mapping[str, object]) -> DatasetSpec:
    """The dataset.

    Args:
        settings: As of `local_spec`; has `dataset` and `dataset_path`.

    Raises:
        InvalidSpec: Everything that is wrong.
    """
    try:
        # The base directory is for datasets without a path, and this one has a path.
        [spec] = local_spec(settings, [], Path()).datasets
    except InvalidSpec as error:
        raise InvalidSpec(*map(_renamed, error.problems)) from None
    return spec


def _renamed(problem: Problem) -> Problem:
    what, remedy = (
        URI_OPTION.sub("URI", PATH_OPTION.sub(DIRECTORY, text)) for text in (problem.what, problem.remedy)
    )
    return Problem(what, problem.measured, remedy)
