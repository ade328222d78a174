"""Encodes and decodes the ferry spec as JSON, including older formats."""

from __future__ import annotations

import msgspec

from podferry.contract.errors import Corrupt, InvalidSpec, Problem
from podferry.contract.file_names import duplicates
from podferry.contract.http_api import SPEC_VARIABLE
from podferry.contract.spec import FORMAT, CheckpointSpec, DatasetSpec, FerrySpec, MountedDataset, OutputSpec
from podferry.contract.versioned_json import decode_document


class FerrySpecV1(msgspec.Struct, frozen=True):
    """What format 1 has instead of `datasets`."""

    dataset: DatasetSpec | None = None


def encode_spec(spec: FerrySpec) -> bytes:
    """The spec as one line of JSON."""
    return msgspec.json.encode(spec)


def decode_spec(data: bytes, source: str = SPEC_VARIABLE) -> FerrySpec:
    """Read a spec from `source`.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: Not a spec, or one with invalid locations or names.
    """
    spec = decode_document(data, FerrySpec, FORMAT, source)
    if spec.format == 1:
        dataset = decode_document(data, FerrySpecV1, FORMAT, source).dataset
        spec = msgspec.structs.replace(spec, datasets=(dataset,) if dataset else (), format=FORMAT)
    parts = (*spec.all_datasets, spec.checkpoints, spec.outputs)
    names = (dataset.name for dataset in spec.all_datasets)
    twice = duplicates(sorted(names))
    what = "two datasets of a spec have the same name"
    unreadable = (problem for part in parts for problem in _unreadable(part))
    Corrupt.raise_any([*unreadable, *(Problem(what, repr(name)) for name in twice)])
    return spec


def _unreadable(
    part: DatasetSpec | MountedDataset | CheckpointSpec | OutputSpec | None,
) -> tuple[Problem, ...]:
    try:
        _ = part and part.parsed
    except InvalidSpec as error:
        return error.problems
    return ()
