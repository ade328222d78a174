"""Shows whether the folder of a checkpoint has all of its files, and the plain commands that copy it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from podferry.cli.checkpoints.lineage_args import has_rank_files
from podferry.contract.destination.commit import Commit, CommittedFile
from podferry.contract.quantity import count_of
from podferry.contract.uri import Uri

S3_SCHEMES, GOOGLE_SCHEMES = ("s3", "s3a"), ("gs", "gcs")
MAX_LINES = 10
"""Commands that are printed, and files."""


def describe_folder(commit: Commit, lineage: Uri, endpoint: str | None = None) -> Iterator[str]:
    """Lines that say which files are elsewhere, and how to copy the checkpoint without podferry.

    Args:
        commit: The checkpoint.
        lineage: Where its lineage is.
        endpoint: URL of the object store, unless it is the vendor's.
    """
    folders = own_folders(commit)
    outside = [file for file in commit.files if _folder_of(file) not in folders]
    yield from _shortened([f"{file.name} is stored at {lineage / file.object}" for file in outside])
    commands = list(_commands(commit, folders, outside, lineage, endpoint))
    if commands:
        own = "each rank has a complete folder" if commit.world > 1 else "its folder is complete"
        lacks = f"{count_of(len(outside), 'file')} of {len(commit.files):,} not in its folder"
        yield f"{lacks if outside else own}; to copy it without podferry:"
        yield from _shortened([f"  {command}" for command in commands])


def own_folders(commit: Commit) -> list[str]:
    """The folders that were filled for this checkpoint: one, or with several pods one for each rank."""
    found = dict.fromkeys(map(_folder_of, commit.files))
    if commit.world == 1:
        return [folder for folder in found if folder == commit.checkpoint]
    return [folder for folder in found if folder.startswith(f"{commit.name}-")]


def _folder_of(file: CommittedFile) -> str:
    return file.object.removesuffix(f"/{file.name}")


def _shortened(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MAX_LINES
    return [*lines[:MAX_LINES], *([f"and {more:,} more: see -o json"] if more > 0 else [])]


def _commands(
    commit: Commit,
    folders: Sequence[str],
    outside: Sequence[CommittedFile],
    lineage: Uri,
    endpoint: str | None,
) -> Iterator[str]:
    apart = has_rank_files(commit)
    for folder in folders:
        target = f"{commit.checkpoint}/{folder}" if apart else commit.checkpoint
        yield from copy_folder(lineage / folder, target, endpoint)
    for file in outside:
        rank = f"/rank-{file.rank}" if file.rank is not None else ""
        yield from copy_file(lineage / file.object, f"{commit.checkpoint}{rank}/{file.name}", endpoint)


def copy_folder(source: Uri, target: str, endpoint: str | None = None) -> list[str]:
    """The command of the store's own tool that copies all below `source` to a local directory; or none.

    Args:
        source: A folder.
        target: The directory.
        endpoint: URL of the object store, unless it is the vendor's.
    """
    there = shlex.quote(target)
    if source.scheme in S3_SCHEMES:
        return [f"aws s3 cp --recursive {_endpoint(endpoint)}{_address('s3', source)} {there}"]
    if source.scheme in GOOGLE_SCHEMES:
        return [f"mkdir -p {there} && gsutil -m rsync -r {_address('gs', source)} {there}"]
    if source.scheme == "file":
        return [f"mkdir -p {there} && cp -r {shlex.quote(f'/{source.key}/.')} {there}"]
    return []


def copy_file(source: Uri, target: str, endpoint: str | None = None) -> list[str]:
    """The same for one object; `target` is a file."""
    there = shlex.quote(target)
    if source.scheme in S3_SCHEMES:
        return [f"aws s3 cp {_endpoint(endpoint)}{_address('s3', source)} {there}"]
    if source.scheme in GOOGLE_SCHEMES:
        return [f"gsutil cp {_address('gs', source)} {there}"]
    if source.scheme == "file":
        directory = shlex.quote(target.rpartition("/")[0] or ".")
        return [f"mkdir -p {directory} && cp {shlex.quote(f'/{source.key}')} {there}"]
    return []


def _endpoint(endpoint: str | None) -> str:
    return f"--endpoint-url {shlex.quote(endpoint)} " if endpoint else ""


def _address(scheme: str, source: Uri) -> str:
    return shlex.quote(f"{scheme}://{source.bucket}/{source.key}")
