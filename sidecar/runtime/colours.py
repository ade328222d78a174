"""Colours for people: only on terminals that have them, unless the user decides.

Sources: https://no-color.org, https://force-color.org.
"""

from __future__ import annotations

import os
from typing import TextIO

CODES = {"red": 31, "green": 32, "yellow": 33}
"""ECMA-48, "Select graphic rendition"."""


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour (empty for none), if the stream shows colours."""
    return f"\x1b[{CODES[colour]}m{text}\x1b[0m" if colour and has_colours(stream) else text


def has_colours(stream: TextIO) -> bool:
    """Whether text for this stream may have colours."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")
