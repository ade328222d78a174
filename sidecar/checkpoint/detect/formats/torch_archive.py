"""torch.save's zip archives: complete when every storage that the pickle references is there.

torch writes the pickle first, then the storages, and `version` whatever happened: an exception leaves a
well-formed archive without some storages. Source: torch/serialization.py (`_save`),
caffe2/serialize/inline_container.cc (`writeEndOfFile`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from podferry.sidecar.checkpoint.detect.formats.file_section import section
from podferry.sidecar.checkpoint.detect.formats.pickle_check import numbered_pickle_verdict, pickle_verdict
from podferry.sidecar.checkpoint.detect.formats.pickle_walk import has_protocol_header, walk_pickles
from podferry.sidecar.checkpoint.detect.formats.storage_references import StorageReferences
from podferry.sidecar.checkpoint.detect.formats.tar_archive import tar_verdict
from podferry.sidecar.checkpoint.detect.formats.verdict import (
    COMPLETE,
    INCONCLUSIVE,
    FormatVerdict,
    Inconclusive,
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

PICKLE = "data.pkl"
FRAME = {".data/serialization_id", ".format_version", ".storage_alignment", "byteorder", "version"}
"""Records that say nothing about the content."""


def torch_verdict(path: Path) -> FormatVerdict:
    """For suffixes of torch's archives that are also used for pickles."""
    with path.open("rb") as file:
        if not starts_like_zip(file):
            return numbered_pickle_verdict(path)
        return archive_verdict(file) if path.stat().st_size else incomplete("it is empty")


def maybe_torch_verdict(path: Path) -> FormatVerdict:
    """For suffixes of many formats."""
    with path.open("rb") as file:
        if not path.stat().st_size or not starts_like_zip(file):
            return INCONCLUSIVE
        return archive_verdict(file)


def zip_or_pickle_verdict(path: Path) -> FormatVerdict:
    """For suffixes of pickles that are also used for torch's archives."""
    with path.open("rb") as file:
        if path.stat().st_size and starts_like_zip(file):
            return archive_verdict(file)
    return pickle_verdict(path)


def torch_or_tar_verdict(path: Path) -> FormatVerdict:
    """For `.tar`, which PyTorch's examples and tutorials give to what torch.save writes: `model.pth.tar`."""
    with path.open("rb") as file:
        is_torch = starts_like_zip(file)
        file.seek(0)
        is_torch = is_torch or has_protocol_header(file.read(2))
    return torch_verdict(path) if is_torch else tar_verdict(path)


def archive_verdict(file: BinaryIO) -> FormatVerdict:
    """The verdict on an archive; TorchScript's and other programs' may lack a member.

    Raises:
        Torn: It is incomplete.
        Inconclusive: It has too many members.
        OSError: It cannot be read.
    """
    members = read_members(file)
    prefix = members[0].name.partition("/")[0] + "/" if members else ""
    records = {one.name.removeprefix(prefix): one for one in members if one.name.startswith(prefix)}
    if records.keys() <= FRAME and "version" in records:
        raise Torn("its data.pkl is not written yet")
    try:
        proven = len(records) == len(members) and _is_proven(file, records)
    except Inconclusive:
        proven = False
    return COMPLETE if proven else unproven(names_and_sizes(members))


def _is_proven(file: BinaryIO, records: Mapping[str, ZipMember]) -> bool:
    """Whether every record is there that the pickle references; False for archives of another kind."""
    script = any(name == "constants.pkl" or name.startswith("code/") for name in records)
    if script or not records.keys() >= {PICKLE, "version"} or records[PICKLE].method != STORED:
        return False
    references = StorageReferences()
    ends = _walk(file, records[PICKLE], references)
    for key, sizes in references.sizes.items():
        record = records.get(f"data/{key}")
        if record is None:
            raise Torn(f"its data.pkl references data/{key}, which is missing")
        if record.size not in sizes:
            raise Torn(f"its data/{key} has {record.size} bytes, its data.pkl says {sizes.start}")
    return references.understood and len(ends) == 1


def _walk(file: BinaryIO, record: ZipMember, references: StorageReferences) -> list[int]:
    try:
        return walk_pickles(section(file, record.start, record.size), record.size, references.observe)
    except EOFError:
        raise Torn("its data.pkl has no end") from None
