"""A stage that several pods of a node read without a copy: its layout, and what its holder says to readers.

    DIRECTORY/files          the dataset
    DIRECTORY/dataset.json   SharedRecord, exactly while all of it is there
    DIRECTORY/holder.sock    the holder's Unix socket, of packets (SOCK_SEQPACKET)
    DIRECTORY.podferry/      the holder's own: readers have no mount of it

A reader connects and sends STARTS. It receives one Handover a second until the dataset is complete. The last
one carries a descriptor: of a file that belongs to this reader alone, locked (flock(2)). The dataset stays as
it is until the descriptor is closed, also if the holder ends meanwhile. A reader that has it mounted already
sends READS, and gets a descriptor at once: the holder may be fetching another dataset by now.
"""

from __future__ import annotations

import msgspec

from podferry.contract.cache_api import FORMAT, HeldDataset
from podferry.contract.errors import Problem

FILES_DIR = "files"
RECORD_FILE = "dataset.json"
SOCKET_FILE = "holder.sock"
PROGRESS_SECONDS = 1.0
"""Between two messages of a holder that is not complete."""
MAX_MESSAGE_BYTES = 64 * 1024
STARTS, READS = b"starts", b"reads"
"""What a reader says: which version it has mounted follows from it."""


class SharedRecord(msgspec.Struct, frozen=True):
    """A dataset that a shared stage has completely.

    Attributes:
        uri: Of the dataset, as the holder was asked for it.
        held: Its files and their checksums.
        format: Version of this document.
    """

    uri: str
    held: HeldDataset
    format: int = FORMAT


class Handover(msgspec.Struct, frozen=True):
    """One message of a holder.

    Attributes:
        uri: Of the dataset.
        digest: Of its manifest, in the last message to a reader that starts; empty before.
        files: Number of its files; bytes: the sum of their sizes. 0 while it is listed.
        bytes_done: Fetched so far.
        problems: Why it cannot be fetched.
    """

    uri: str
    digest: str = ""
    files: int = 0
    bytes: int = 0
    bytes_done: int = 0
    problems: tuple[Problem, ...] = ()
