"""What ends the demo early."""

from __future__ import annotations


class DemoError(Exception):
    """Something was not as promised; the text is the sentence that says what."""
