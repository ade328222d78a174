"""Runs the step `prepare`: a command converts a dataset, unless a result is there."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from podferry.components.data.prepare.prepared import Prepared, prepared
from podferry.components.parsers import refuse_invalid
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import InvalidSpec, Refused
from podferry.contract.http_api import DATASET_VARIABLE

TARGET_VARIABLE = "PODFERRY_TARGET"
"""The directory that the command writes its result to."""
PARAMETERS_VARIABLE = "PODFERRY_PARAMETERS"
"""The parameters, as JSON."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outputs of the step.

    Attributes:
        reference: The result, frozen.
        files: Number of its files.
        converted: Whether this run has converted.
    """

    reference: str
    files: int
    converted: bool


def prepare_dataset(
    reference: str, to: str, command: Sequence[str], parameters: dict[str, Any], **access: str
) -> Outcome:
    """Convert a dataset with a command, once for its content, the parameters and the command itself.

    `access` as in `prepared`. The command finds the staged dataset at `PODFERRY_DATASET`, writes files below
    `PODFERRY_TARGET`, and reads its parameters, as JSON, from `PODFERRY_PARAMETERS`.

    Raises:
        Refused: The command failed, or wrote nothing.
        FerryError: As `prepared`.
    """
    refuse_invalid(reference=reference, to=to, **access)
    if not command:
        remedy = "Give one, or use `prepared` in a component of your own"
        raise InvalidSpec.of("there is no command", "[]", remedy)
    with prepared(reference, to, parameters, command=command, **access) as conversion:
        if conversion.needed:
            _convert(command, conversion)
    return Outcome(conversion.reference, parse_reference(conversion.reference).files or 0, conversion.needed)


def _convert(command: Sequence[str], conversion: Prepared) -> None:
    variables = {
        DATASET_VARIABLE: str(conversion.source),
        TARGET_VARIABLE: str(conversion.target),
        PARAMETERS_VARIABLE: msgspec.json.encode(conversion.parameters).decode(),
    }
    try:
        done = subprocess.run(list(command), env={**os.environ, **variables}, check=False)
    except OSError as error:
        remedy = "Check the command and the step's image"
        raise Refused.of(f"{command[0]} cannot be started", str(error.strerror), remedy) from error
    if done.returncode:
        what = f"the conversion failed with exit code {done.returncode}"
        raise Refused.of(what, shlex.join(command), "Its output is above")
