"""The record of uploaded outputs, and the layout of their destination. Format 1.

    <uri>/<natural names>                    the files, the newest version of each
    <uri>/.podferry/outputs.json             the record: written when training starts and when it has ended
    <uri>/.podferry/outputs-<rank>.json      with several pods: one record each

It shows how a training run ended: its exit code, its files and its problems.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.errors import Problem
from podferry.contract.versioned_json import document_decoder

FORMAT = 1


class OutputRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """State of the outputs of one training run.

    Attributes:
        format: Version of this document.
        lineage: The lineage of the run.
        writer: The agent's id, as in its commits.
        run: KFP's run id, or None outside KFP.
        rank: The pod's number in its training run, or None if unknown.
        files: Number of files uploaded as the trainer left them.
        bytes: Sum of their sizes.
        ended_at: End of the last upload, by the agent's clock, with time zone; None while training runs.
        exit_code: The trainer's exit code, or None if unknown.
        problems: What is missing, and why.
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
    """The name of a pod's record, relative to the destination."""
    alone = rank is None or (world == 1 and rank == 0)
    return f"{PRIVATE}/outputs.json" if alone else f"{PRIVATE}/outputs-{rank}.json"


decode_record = document_decoder(OutputRecord, FORMAT)
