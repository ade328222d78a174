"""Keras archives: a zip with the weights as HDF5, written last, and only if the save succeeded.

Before 3.6, an exception left an archive with the weights saved until then. The files of layers with
vocabularies follow the weights. Source: keras/src/saving/saving_lib.py (`_save_model_to_fileobj`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from podferry.sidecar.checkpoint.detect.formats.file_section import read_at, section
from podferry.sidecar.checkpoint.detect.formats.hdf5 import check_closed, hdf5_verdict
from podferry.sidecar.checkpoint.detect.formats.verdict import (
    COMPLETE,
    FormatVerdict,
    Torn,
    incomplete,
    unproven,
)
from podferry.sidecar.checkpoint.detect.formats.zip_archive import names_and_sizes
from podferry.sidecar.checkpoint.detect.formats.zip_directory import (
    STORED,
    ZipMember,
    read_members,
    starts_like_zip,
)

METADATA, CONFIG, WEIGHTS = "metadata.json", "config.json", "model.weights.h5"
OTHER_WEIGHTS = "model.weights."
"""Beginning of the weights' name in other formats, such as `.npz`."""
WEIGHTS_LAST_SINCE = (3, 6)
MAX_CONFIG_BYTES = 16 << 20
VOCABULARIES = frozenset(("IndexLookup", "IntegerLookup", "StringLookup", "TextVectorization"))
"""Keras' layers that save files of their own."""


def keras_verdict(path: Path) -> FormatVerdict:
    """The verdict on a `.keras` file: an archive, or HDF5 written by older releases.

    Raises:
        Torn: It is incomplete.
        Inconclusive: It is of another kind.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return incomplete("it is empty")
        if not starts_like_zip(file):
            return hdf5_verdict(path)
        members = read_members(file)
        by_name = {member.name: member for member in members}
        _check_members(file, by_name)
        return (
            COMPLETE if _is_proven(file, by_name) else unproven(names_and_sizes(members, (METADATA, CONFIG)))
        )


def _check_members(file: BinaryIO, members: Mapping[str, ZipMember]) -> None:
    for name in (METADATA, CONFIG):
        if name not in members:
            raise Torn(f"it has no {name} yet")
    if not any(name.startswith(OTHER_WEIGHTS) for name in members):
        raise Torn(f"it has no {WEIGHTS} yet")
    weights = members.get(WEIGHTS)
    if weights is not None and weights.method == STORED:
        try:
            check_closed(section(file, weights.start, weights.size), weights.size)
        except Torn as torn:
            raise Torn(f"{WEIGHTS}: {torn}") from None


def _is_proven(file: BinaryIO, members: Mapping[str, ZipMember]) -> bool:
    """Whether the weights, once there, are all of them, and nothing follows them."""
    if WEIGHTS not in members:
        return False
    try:
        release = str(_document(file, members[METADATA])["keras_version"]).split(".")
        layers = list(_layers(_document(file, members[CONFIG])))
        recent = tuple(map(int, release[:2])) >= WEIGHTS_LAST_SINCE
    except (ValueError, LookupError, TypeError, RecursionError, EOFError):
        return False
    return recent and all(_saves_only_weights(layer) for layer in layers)


def _document(file: BinaryIO, member: ZipMember) -> dict[str, Any]:
    if member.method != STORED or member.size > MAX_CONFIG_BYTES:
        raise ValueError
    document = json.loads(read_at(file, member.start, member.size))
    if not isinstance(document, dict):
        raise TypeError
    return document


def _layers(config: object) -> Iterator[dict[str, Any]]:
    """Every object in a configuration that names its class."""
    if isinstance(config, dict):
        if "class_name" in config:
            yield config
        for value in config.values():
            yield from _layers(value)
    elif isinstance(config, list):
        for value in config:
            yield from _layers(value)


def _saves_only_weights(layer: Mapping[str, Any]) -> bool:
    """Whether it is known to have no files of its own; other people's classes may."""
    module = str(layer.get("module") or "")
    known = module == "builtins" or module.partition(".")[0] == "keras" or layer["class_name"] == "__tuple__"
    return known and layer["class_name"] not in VOCABULARIES
