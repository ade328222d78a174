"""Token files that end with a line break: obstore copies the content to an HTTP header, and panics."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

from podferry.contract.errors import InvalidSpec
from podferry.storage.credentials.sources import CONTROL_CHARACTER


class StrippedTokenFile:
    """A copy of a token file in memory, without white space around the token.

    Attributes:
        path: Of the copy; only this process can read it, as long as the object exists.
    """

    def __init__(self, source: Path) -> None:
        """Copy the file. Raises `OSError`."""
        self._source, self._token = source, b""
        self._copy = os.memfd_create("token")
        weakref.finalize(self, os.close, self._copy)
        self.path = f"/proc/self/fd/{self._copy}"
        self.refresh()

    def refresh(self) -> None:
        """Copy the file again if it has changed. Raises `OSError`."""
        token = self._source.read_bytes().strip()
        if token != self._token:
            os.pwrite(self._copy, token, 0)
            os.ftruncate(self._copy, len(token))
            self._token = token


def stripped_token_file(path: str) -> StrippedTokenFile | None:
    """A copy to use in place of the file, or None if obstore can read the file itself.

    Raises:
        InvalidSpec: The token has several lines or other control characters.
    """
    try:
        text = Path(path).read_text(encoding="latin-1")
        if CONTROL_CHARACTER.search(text.strip()):
            what = f"the token in {path} has several lines, or other control characters"
            raise InvalidSpec.of(what, "", "Write only the token to the file")
        return None if text == text.strip() else StrippedTokenFile(Path(path))
    except OSError:  # obstore reports it
        return None
