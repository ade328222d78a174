"""What a sync refuses before it moves anything. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from podferry.contract.errors import Problem
from podferry.contract.manifest import printable
from podferry.contract.uri import READ_ONLY_SCHEMES, Uri
from podferry.storage.obstore.engine import OBSTORE

MAX_KEY_BYTES = 1024
"""Of an object's key. Sources: Amazon S3, "Naming Amazon S3 objects"; Google Cloud Storage, "Object names".
Azure counts characters ("Naming and referencing containers, blobs, and metadata")."""
KEY_LIMITED_SCHEMES = (*OBSTORE.scheme_names, "gs", "gcs", "oss")
MAX_NAMES_SHOWN = 20


def place_problems(source: Uri, destination: Uri) -> Iterator[Problem]:
    """Why one place cannot be synced with the other."""
    if destination.scheme in READ_ONLY_SCHEMES:
        what = "the Hugging Face Hub" if destination.scheme == "hf" else "a web server"
        yield Problem(f"{what} takes no files", str(destination), "Sync to an object store or a directory")
    if (source.scheme, source.bucket) != (destination.scheme, destination.bucket):
        return
    first, second = PurePosixPath("/", source.key), PurePosixPath("/", destination.key)
    if first.is_relative_to(second) or second.is_relative_to(first):
        what = "the destination is the source, or one of them is in the other"
        yield Problem(what, f"{source} and {destination}", "Choose another destination")


def unfit_names(names: Iterable[str], destination: Uri) -> list[Problem]:
    """The names that the destination's store cannot hold; what is no file name at all, a listing refuses."""
    if destination.scheme not in KEY_LIMITED_SCHEMES:
        return []
    lengths = ((name, len((destination / name).key.encode())) for name in names)
    what, remedy = "a key is too long for the destination", "Exclude it, or choose a shorter destination"
    problems = [
        Problem(what, f"{length:,} bytes, at most {MAX_KEY_BYTES:,}: {printable(name)}", remedy)
        for name, length in lengths
        if length > MAX_KEY_BYTES
    ]
    return problems[:MAX_NAMES_SHOWN]
