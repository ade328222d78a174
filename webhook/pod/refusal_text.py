"""Problems as one text that fits where people read it.

Linux allows 128 KiB for one argument of a program, and the gate gets the text as one; a quoted annotation may
be longer. Source: execve(2), MAX_ARG_STRLEN.
"""

from __future__ import annotations

from collections.abc import Sequence

from podferry.contract.errors import Problem

MAX_LINE_LENGTH = 1000
"""Characters of one problem, its remedy at the end among them."""
END_LENGTH = 300
"""Characters of a long problem's end that stay."""
MAX_PROBLEMS = 25
"""With `MAX_LINE_LENGTH`, the text is below 128 KiB even if every character takes four bytes."""


def refusal_text(problems: Sequence[Problem]) -> str:
    """One line for each problem; long ones are cut in the middle, and those beyond `MAX_PROBLEMS` counted."""
    lines = [_cut(str(problem)) for problem in problems[:MAX_PROBLEMS]]
    left_out = len(problems) - MAX_PROBLEMS
    return "\n".join([*lines, *([f"… and {left_out:,} more problems"] if left_out > 0 else [])])


def _cut(line: str) -> str:
    if len(line) <= MAX_LINE_LENGTH:
        return line
    begin, end = line[: MAX_LINE_LENGTH - END_LENGTH], line[-END_LENGTH:]
    return f"{begin} … ({len(line) - MAX_LINE_LENGTH:,} characters left out) … {end}"
