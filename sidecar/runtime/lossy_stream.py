"""A text stream that never fails: a log must not end an agent whose terminal was closed."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import TextIO


class LossyStream(io.TextIOBase):
    """Passes on what it gets; what cannot be written (EIO, EPIPE, ENOSPC) is lost."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str, /) -> int:
        """See `io.TextIOBase`."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """See `io.TextIOBase`."""
        with suppress(OSError, ValueError):
            self._stream.flush()
