"""The exit codes of podferry's commands, documented in docs/exit-codes.md.

Those from 74 to 78 are from sysexits.h: few programs use them, so a training command's own codes stay
clear. 126 and 127 are from POSIX, "Shell Command Language", "Exit Status for Commands".
"""

from __future__ import annotations

EXIT_FAILED = 1
"""It failed; the reasons are printed. Of `podferry run` and the gate: a later try may succeed."""
EXIT_USAGE = 2
"""Wrong options or arguments, as in shells."""
EXIT_NOT_DURABLE = 74
"""Training succeeded, but its last checkpoint or its outputs are not uploaded: EX_IOERR."""
EXIT_DOUBTFUL = 76
"""Everything is durable, but the newest checkpoint is doubtful: not proven complete."""
EXIT_NEVER = 78
"""Retrying cannot help: EX_CONFIG, for use in a podFailurePolicy."""
EXIT_NOT_EXECUTABLE = 126
"""The training command is there and cannot be started, as in shells."""
EXIT_NOT_FOUND = 127
"""There is no such training command, as in shells."""
EXIT_INTERRUPTED = 130
"""Ctrl-C, as in shells: 128 and the signal's number."""
