"""The record of uploaded outputs, and what lies where at their destination. Format 1.

    <uri>/<natural names>                    the files, the newest version of each
    <uri>/.podferry/outputs.json             the record: written when training starts and when it has ended
    <uri>/.podferry/outputs-<rank>.json      with several pods: each one's

It tells how a training went by what it left behind, its exit code with it.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from podferry.contract.commit import PRIVATE
from podferry.contract.errors import Problem
from podferry.contract.versioned_json import decode_document

FORMAT = 1


class OutputRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far the outputs of one training are.

    Attributes:
        format: Version of this document.
        lineage: Which attempts belong together.
        writer: The agent, as its commits name it.
        run: KFP's run id, None outside KFP.
        rank: The agent's number in its training, None where nothing says.
        files: How many are there as the trainer left them.
        bytes: Their sum.
        ended_at: When the last upload ended, by the agent's clock, with its zone; None while training runs.
        exit_code: What the trainer ended with, None where nobody said.
        problems: What is not there, and why.
    """

    format: int
    lineage: str
    writer: str
    run: str | None = None
    rank: int | None = None
    files: int = 0
    bytes: int = 0
    ended_at: datetime | None = None
    exit_code: int | None = None
    problems: tuple[Problem, ...] = ()


def record_name(world: int, rank: int | None) -> str:
    """Where a pod's record lies, relative to the destination."""
    return f"{PRIVATE}/outputs.json" if world == 1 or rank is None else f"{PRIVATE}/outputs-{rank}.json"


def encode_record(record: OutputRecord) -> bytes:
    """The record as indented JSON: people read it in a bucket's browser."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1)


def decode_record(data: bytes, source: str) -> OutputRecord:
    """Read a record.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: No record.
    """
    return decode_document(data, OutputRecord, FORMAT, source)
