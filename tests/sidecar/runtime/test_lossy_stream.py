import contextlib
import io
import os
import pty

import pytest

from podferry.sidecar.runtime.lossy_stream import LossyStream


def test_text_is_passed_on():
    kept = io.StringIO()
    stream = LossyStream(kept)
    print("a line", file=stream, flush=True)
    assert kept.getvalue() == "a line\n"


def test_a_closed_terminal_is_no_error():
    ours, theirs = pty.openpty()
    os.close(ours)
    terminal = io.TextIOWrapper(io.FileIO(theirs, "w"), write_through=True)
    with pytest.raises(OSError, match="Input/output error"):
        terminal.write("an error")
    print("lost", file=LossyStream(terminal), flush=True)
    with contextlib.suppress(OSError):
        terminal.close()
