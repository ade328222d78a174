"""The HTTP API of a cache holder, version 1: paths and documents.

A holder has datasets for the pods near it, and serves them read-only.

    GET /v1/dataset?uri=URI&wait=S  200 HeldDataset: the holder has all of it, verified
                                    202 Filling: it is fetching it; responds after S seconds at most
                                    404 Refusal: it is none of the holder's datasets
                                    503 Refusal: it cannot be fetched, and why
    GET /v1/files/DIGEST/NAME       the file's bytes, NAME encoded; `Range` is honored
                                    404 Refusal: it does not have these bytes, or not yet
    GET /v1/bundles/DIGEST/POSITIONS
                                    many small files one after the other; see `podferry.contract.bundle`
                                    404 Refusal: it does not have them, or they are too much for one response
    GET /v1/progress?uri=URI&log=ID&since=N&wait=S&holder=NAME&digest=D
                                    200 Progress: for other holders alone; responds after S seconds at most
                                    404 Refusal: it does not share this dataset
                                    503 Refusal: it cannot be fetched, and why
    POST /v1/refresh?uri=URI        202 Filling: for other holders alone; it lists the source again, and
                                    fetches what differs
                                    404 Refusal: it is none of the holder's datasets
    GET /v1/status                  HolderStatus
    GET /healthz                    200 while the process runs

With tokens, a request without a valid one gets 401, and one of a pod that may not read gets 403, as does
one for the progress or a refresh that has no token of the holders' own service account. An address that has
sent many tokens that are not valid gets 429.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, quote_plus, urlencode

import msgspec

from podferry.contract.errors import Problem
from podferry.contract.file_part import FilePart
from podferry.contract.manifest import Manifest
from podferry.contract.spec import PREFIX
from podferry.contract.status import DatasetStatus

FORMAT = 1
PORT = 8091
AUDIENCE = "podferry-cache"
"""Of the tokens that readers send."""
DATASET_PATH = "/v1/dataset"
FILES_PATH = "/v1/files"
BUNDLES_PATH = "/v1/bundles"
PROGRESS_PATH = "/v1/progress"
REFRESH_PATH = "/v1/refresh"
STATUS_PATH = "/v1/status"
HEALTH_PATH = "/healthz"
TOKEN_HEADER = "Podferry-Token"  # noqa: S105 - a header's name
"""Instead of `Authorization`, which the API server's proxy keeps to itself."""
HOLDER_HEADER = "Podferry-Holder"
"""Of requests of other holders, which are no readers."""
CACHE_LABEL = f"{PREFIX}cache"
"""On the Service and on the holders: the cache's name."""
SOURCE_ANNOTATION = f"{PREFIX}source"
"""On the Service: the dataset, as pods name it."""
READERS_ANNOTATION = f"{PREFIX}readers"
"""On the Service: globs over other namespaces whose pods may read, separated by blanks."""
NODES_ANNOTATION = f"{PREFIX}nodes"
"""On the StatefulSet: how many holders `podferry cache create` was asked for, however it is scaled later."""
CLEARED_NODES = f"{PREFIX}cleared-nodes"
"""On a StatefulSet that `podferry cache clear --empty` has stopped: the number of its holders before."""
READER_CLAIM = "podferry-cache-{}"
"""Of a cache's readers that share its data: the claim in their namespace, by the cache's name."""
HOLDER_VOLUME = "podferry-cache.{}.{}"
"""The volume of holders that share their data, by the namespace and name of the cache."""
READER_VOLUME = f"{HOLDER_VOLUME}.{{}}"
"""What a reader's claim is bound to: the same, and the claim's namespace."""
MAX_WAIT_SECONDS = 25.0
"""Seconds that one request may wait: below the idle time-outs of common proxies."""
RETRY_AFTER_SECONDS = 1


class Holder(msgspec.Struct, frozen=True):
    """Where a holder is.

    Attributes:
        url: `http://HOST:PORT`.
        token: A file with a bearer token, which the kubelet renews; None without.
    """

    url: str
    token: Path | None = None


class HeldDataset(msgspec.Struct, frozen=True):
    """A dataset that a holder has completely.

    Attributes:
        manifest: Its files, as they were listed at the source.
        checksums: CRC-64/NVME of each file, in the manifest's order: computed when it was verified.
        bundles: Whether the holder sends bundles of small files.
        format: Version of this document.
    """

    manifest: Manifest
    checksums: tuple[int, ...]
    bundles: bool = False
    format: int = FORMAT


class Filling(msgspec.Struct, frozen=True):
    """How far a holder is.

    Attributes:
        bytes: To fetch; 0 while it lists.
        bytes_done: Fetched so far.
    """

    bytes: int = 0
    bytes_done: int = 0


class PartNews(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a holder says of one part of a file.

    Attributes:
        part: The part; most files have one.
        checksum: CRC-64/NVME of the part that the holder has; None: it fetches it from the source.
    """

    part: FilePart
    checksum: int | None = None


class Progress(msgspec.Struct, frozen=True):
    """What a holder has of a dataset, for the others.

    Attributes:
        holder: Its name.
        log: Identifies the list of its news: a holder that starts again has another one.
        end: Number of news in the list: what the next request is to name as `since`.
        news: Those after the `since` of the request; all, if that named another log.
        digest: Of its manifest; empty while it lists.
        bytes_done: Fetched so far.
        format: Version of this document.
    """

    holder: str
    log: str
    end: int
    news: tuple[PartNews, ...] = ()
    digest: str = ""
    bytes_done: int = 0
    format: int = FORMAT


class Asker(msgspec.Struct, frozen=True):
    """What one holder says of itself when it asks another.

    Attributes:
        holder: Its name.
        digest: Of its manifest.
    """

    holder: str
    digest: str


class Refusal(msgspec.Struct, frozen=True):
    """Why a holder serves nothing."""

    problems: tuple[Problem, ...]


class HolderStatus(msgspec.Struct, frozen=True):
    """A holder and its datasets.

    Attributes:
        node: Name of its node, or of the machine.
        datasets: Their state.
        complete: The URIs of those that it serves.
        problems: Why others cannot be fetched.
        served_bytes: Of files, sent to readers since the start.
        readers: Who reads at this moment: `NAMESPACE/POD`, or an address where there are no tokens; a text
            of its own for each that reads in place.
        refreshing: The URIs whose sources are to be listed again, or of which the next version is fetched.
        format: Version of this document.
    """

    node: str
    datasets: tuple[DatasetStatus, ...]
    complete: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    served_bytes: int = 0
    readers: tuple[str, ...] = ()
    refreshing: tuple[str, ...] = ()
    format: int = FORMAT


def dataset_path(uri: str, wait_seconds: float) -> str:
    """The path and query that ask for a dataset."""
    return f"{DATASET_PATH}?uri={quote_plus(uri)}&wait={wait_seconds:g}"


def file_path(digest: str, name: str) -> str:
    """The path of a file of the dataset with this digest."""
    return f"{FILES_PATH}/{digest}/{quote(name)}"


def bundle_path(digest: str, name: str) -> str:
    """The path of a bundle of small files of the dataset with this digest."""
    return f"{BUNDLES_PATH}/{digest}/{name}"


def refresh_path(uri: str) -> str:
    """The path and query that have the source of a dataset listed again."""
    return f"{REFRESH_PATH}?uri={quote_plus(uri)}"


def progress_path(uri: str, log: str, since: int, wait_seconds: float, asker: Asker) -> str:
    """The path and query that ask for the news of a log."""
    fields = {"uri": uri, "log": log, "since": since, "wait": f"{wait_seconds:g}"}
    return f"{PROGRESS_PATH}?{urlencode({**fields, 'holder': asker.holder, 'digest': asker.digest})}"
