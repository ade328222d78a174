"""Which repository, revision and path a URI of the Hugging Face Hub names. Pure.

`hf://datasets/ORG/NAME@REVISION/PATH`, `hf://spaces/…`, `hf://models/…`; without a kind, a model. Source:
"Interact with the Hub through the Filesystem API", documentation of huggingface_hub.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import msgspec

from podferry.contract.errors import InvalidSpec
from podferry.contract.schemes import HUB_KINDS
from podferry.contract.uri import Uri

DEFAULT_REVISION = "main"
REFERENCE = re.compile(r"refs/(convert|pr)/[^/]+")
"""Revisions with slashes that the Hub makes itself; a slash in any other is written `%2F`."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
"""Of an organization, a user or a repository."""


class Repository(msgspec.Struct, frozen=True):
    """A repository at a revision.

    Attributes:
        kind: One of `HUB_KINDS`.
        name: With its organization or user: `org/name`.
        revision: A branch, a tag or a commit.
        path: Of a directory or a file in it, or empty.
    """

    kind: str
    name: str
    revision: str
    path: str = ""

    @property
    def api(self) -> str:
        """The path of its API."""
        return f"/api/{self.kind}/{self.name}"

    @property
    def page(self) -> str:
        """The path of its page, below which its files are."""
        return f"/{self.name}" if self.kind == "models" else f"/{self.kind}/{self.name}"


def repository_of(uri: Uri) -> Repository:
    """The repository and path of a URI.

    Raises:
        InvalidSpec: It names no repository.
    """
    parts = [part for part in (uri.bucket, *uri.key.split("/")) if part]
    kind = parts.pop(0) if parts[0] in HUB_KINDS else "models"
    if len(parts) < 2:
        remedy = f"Write hf://{kind}/ORGANIZATION/NAME/PATH"
        raise InvalidSpec.of("the URI names no repository of the Hugging Face Hub", str(uri), remedy)
    organization, name, path = parts[0], parts[1], "/".join(parts[2:])
    name, at, revision = name.partition("@")
    if at and (special := REFERENCE.match(f"{revision}/{path}")):
        revision, path = special[0], f"{revision}/{path}"[special.end() :].lstrip("/")
    if not all(map(NAME.fullmatch, (organization, name))) or (at and not revision):
        remedy = "Write ORGANIZATION/NAME, and @REVISION behind the name if needed"
        raise InvalidSpec.of("not the name of a repository of the Hugging Face Hub", str(uri), remedy)
    return Repository(kind, f"{organization}/{name}", unquote(revision) or DEFAULT_REVISION, path)


def quoted_revision(revision: str) -> str:
    """A revision as a part of a URL."""
    return revision if REFERENCE.fullmatch(revision) else quote(revision, safe="")
