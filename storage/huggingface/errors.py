"""Errors of the Hugging Face Hub by the code in its header `X-Error-Code`."""

from __future__ import annotations

import aiohttp

from podferry.contract.errors import AccessDenied, BucketNotFound, FerryError, InvalidSpec, NotFound
from podferry.storage.errors.translate import StoreLocation, credentials_read, store_error
from podferry.storage.http.page_detection import is_html
from podferry.storage.huggingface.repository import Repository

FAILED, UNAUTHORIZED, NOT_FOUND, REDIRECTED = 400, 401, 404, 300
NOT_VALID = "Invalid"
"""How the message about a token that is not valid begins: the Hub uses 401 for repositories as well."""


def raise_for_hub(response: aiohttp.ClientResponse, location: StoreLocation, repository: Repository) -> None:
    """Return if a response has what was requested.

    Raises:
        BucketNotFound, NotFound: There is no such repository, revision or file.
        AccessDenied: The repository is gated, or the token is not valid.
        InvalidSpec: It redirects to another page, or has a page of its own.
        aiohttp.ClientResponseError: Anything else.
    """
    if response.status < REDIRECTED:
        return
    if response.status < FAILED:
        raise no_hub(location, f"HTTP {response.status} to {response.headers.get('Location', '')[:200]}")
    if response.status == NOT_FOUND and is_html(response.content_type):
        raise no_hub(location, f"HTTP {response.status}, {response.content_type}")
    found = _error(response, location, repository)
    if found is not None:
        raise found
    response.raise_for_status()


def no_hub(location: StoreLocation, measured: str) -> InvalidSpec:
    """The error for a server that does not respond as the Hub."""
    what = f"the server does not respond as the Hugging Face Hub for {location.uri}"
    return InvalidSpec.of(what, f"{measured}; {location.address}", "Check HF_ENDPOINT and what is between")


def _error(
    response: aiohttp.ClientResponse, location: StoreLocation, repository: Repository
) -> FerryError | None:
    code, said = (response.headers.get(name, "") for name in ("X-Error-Code", "X-Error-Message"))
    unused = () if location.credentials else location.unused
    read = credentials_read(location.credentials, unused)
    measured = "; ".join(filter(None, [f"HTTP {response.status} {code}".strip(), said[:200], read]))
    name = f"{repository.kind}/{repository.name}"
    if code == "GatedRepo":
        page = f"{location.endpoint}{repository.page}"
        remedy = f"Accept its conditions at {page} with the account of HF_TOKEN"
        return AccessDenied.of(f"the repository {name} is gated", measured, remedy)
    if code == "RevisionNotFound":
        what = f"the repository {name} has no revision {repository.revision}"
        return NotFound.of(what, measured, "Check the branch, tag or commit behind the @")
    if code == "EntryNotFound":
        return NotFound.of(f"there is no file {location.uri}", measured, "Check the path")
    if response.status == UNAUTHORIZED and said.startswith(NOT_VALID):
        return store_error("wrong credentials", location, evidence=measured)
    if code == "RepoNotFound" or response.status == UNAUTHORIZED:
        remedy = "Check its name; if it is private, set HF_TOKEN in the environment or in the Secret"
        return BucketNotFound.of(f"there is no repository {name}, or it is private", measured, remedy)
    return None
