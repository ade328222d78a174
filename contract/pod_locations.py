"""Locations and directories that a pod cannot use.

A location must be in a store: the agent's container has only volumes of its own. A directory becomes the
mount point of a volume, which hides what the trainer's image has there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from podferry.contract.claims import SCHEME, claim_path_problem, hint_for
from podferry.contract.errors import Problem
from podferry.contract.hidden_secrets import hide_secrets
from podferry.contract.schemes import STORE_SCHEMES, WITHOUT_USER, remedy_for_other_name
from podferry.contract.spec import PREFIX, SHM, FerrySpec
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri, parse_uri

LOCAL_SCHEMES = frozenset(
    {"file", "local", "memory", "asynclocal"}
    | {"dir", "generic", "async_wrapper", "asyncwrapper", "reference", "data", "git", "dvc"}
    | {"blockcache", "cached", "filecache", "simplecache", "zip", "tar", "libarchive"}
)
"""Files and memory of the process that opens them, and file systems of fsspec around another one: with
`FSSPEC_DIR_PATH` in a Secret, `dir://` would be the agent's own files."""
READ = "not a store: the agent would read its own container, which has no volume of the pod"
WRITTEN = "not a store: it would be in the agent's own container, and lost with the pod"
SYSTEM_DIRS = (
    *("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/sbin"),
    *("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/sbin"),
    *("/usr/local/bin", "/usr/local/lib", "/usr/local/sbin"),
    *("/run/secrets", "/var/run/secrets"),
)
"""Programs, libraries and settings of images, and where Kubernetes and others mount tokens.

`/dev`, `/proc` and `/sys` are reserved everywhere: `podferry.contract.annotation_values`.
"""
INSIDE_SYSTEM_DIRS = tuple(f"{one}/" for one in SYSTEM_DIRS)
ABOVE_SYSTEM_DIRS = frozenset(str(above) for one in SYSTEM_DIRS for above in PurePosixPath(one).parents[:-1])


def location_problems(spec: FerrySpec) -> Iterator[Problem]:
    """Every location of a pod's spec, however it was named, that is not in a store."""
    for key, uri in _sources(spec):
        yield from _store_problems(key, uri, READ)
    for key, uri in _destinations(spec):
        yield from _store_problems(key, uri, WRITTEN)


def _store_problems(key: str, uri: Uri, local: str) -> Iterator[Problem]:
    """Why a location is in no store; `local` is what is wrong with one of this container."""
    if uri.scheme in LOCAL_SCHEMES:
        remedy = "Use a store, such as s3://BUCKET/PREFIX, or the claim of a volume: pvc://CLAIM/PATH"
        yield Problem(f"{PREFIX}{key}: {local}", str(uri), remedy)
    elif hint := hint_for(uri.scheme):
        yield Problem(f"{PREFIX}{key}: no engine opens {uri.scheme}://", str(uri), hint)
    elif uri.scheme == SCHEME and (problem := claim_path_problem(key, uri)):
        yield problem
    elif uri.scheme in WITHOUT_USER and "@" in uri.bucket:
        what = f"{PREFIX}{key}: a URI of {uri.scheme}:// must not name a user"
        yield Problem(
            what, hide_secrets(str(uri)), "Remove what is before the @; the Secret says who logs in"
        )
    elif uri.scheme == "smb" and not uri.key:
        yield Problem(
            f"{PREFIX}{key}: the URI names no share", str(uri), f"Write smb://{uri.bucket}/SHARE/path"
        )


def unknown_scheme_warnings(spec: FerrySpec) -> Iterator[str]:
    """Locations that no engine of podferry opens, though one of another package may."""
    for key, uri in (*_sources(spec), *_destinations(spec)):
        scheme = uri.scheme
        if scheme in LOCAL_SCHEMES or scheme in STORE_SCHEMES or hint_for(scheme):
            continue
        remedy = remedy_for_other_name(scheme) or did_you_mean(
            scheme, STORE_SCHEMES, f"podferry's own: {', '.join(STORE_SCHEMES)}"
        )
        yield f"{PREFIX}{key}: {scheme}:// needs another package's engine in the agent's image. {remedy}"


def directory_problems(spec: FerrySpec) -> Iterator[Problem]:
    """Every directory whose volume would hide a part of the system, or that is inside one."""
    for key, path in directories_of(spec):
        if path in ABOVE_SYSTEM_DIRS or f"{path}/".startswith(INSIDE_SYSTEM_DIRS):
            hidden = next(one for one in SYSTEM_DIRS if _nested(one, path))
            what = f"{PREFIX}{key}: a volume there would hide files of the system"
            measured = path if hidden == path else f"{path}, system directory {hidden}"
            yield Problem(what, measured, f"Write a path below {SHM}, or one of your own such as /data")


def _nested(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def directories_of(spec: FerrySpec) -> Iterator[tuple[str, str]]:
    """The key and the path of each directory that the trainer sees."""
    for dataset in spec.all_datasets:
        yield dataset.key("dataset-path"), dataset.path
    if spec.checkpoints:
        yield "checkpoint-path", spec.checkpoints.path
    if spec.outputs:
        yield "output-path", spec.outputs.path


def _sources(spec: FerrySpec) -> Iterator[tuple[str, Uri]]:
    for dataset in spec.datasets:
        yield dataset.key("dataset"), dataset.parsed.uri
    if spec.checkpoints and "://" in spec.checkpoints.restore:
        yield "restore", parse_uri(spec.checkpoints.restore)


def _destinations(spec: FerrySpec) -> Iterator[tuple[str, Uri]]:
    if spec.checkpoints:
        yield "checkpoints", spec.checkpoints.parsed
    if spec.outputs:
        yield "outputs", spec.outputs.parsed
