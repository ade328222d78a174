"""Words that send a reader to a dictionary or to a second reading: `make check` keeps them out of the
project's text.

The text is the documents, and the docstrings, comments, messages and names of all code but the tests.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = (
    *("contract", "storage", "sidecar", "webhook", "trainer", "components", "cli", "pipelines", "top_level"),
    *("demo", "faults", "benchmarks"),
)
PAGES = (
    *("*.md", "docs/*.md", "deploy/**/*.yaml", "Makefile", "Dockerfile.sidecar", "pyproject.toml"),
    *(f"{folder}/**/*.{kind}" for folder in CODE for kind in ("py", "md")),
)
BETTER = {
    r"wish(?:es|ed)?": "setting, request, spec",
    r"anew": "again",
    r"aside": "to a partial file",
    r"besides?": "next to, in parallel, also",
    r"told|tells?": "report, notify, configure",
    r"brings?|brought": "download, fetch, stage",
    r"lacking": "missing, without",
    r"lies? (?:there|at|in|on|below|here|under|next to)": "is, exists",
    r"in hand": "current",
    r"what for": "why",
    r"whoever|whomever": "the caller",
    r"goes on|go on|went on": "continues, resumes",
    r"see that no": "avoid",
    r"one more:": "also",
    r"of nobody|by nobody|nobody's": "without an owner",
    r"(?:none|nothing) where there is (?:none|nothing|no)": "or None",
}
"""What is banned, and what to write instead."""
SPACE = r"[\s#_]+"
"""Between two banned words: also a line's end, with the `#` of a comment, and the `_` of a name."""
BANNED = {
    re.compile(rf"(?<![A-Za-z-])(?:{words.replace(' ', SPACE)})(?![A-Za-z-])", re.IGNORECASE): better
    for words, better in BETTER.items()
}
CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, words, better) for each banned word of a text."""
    text = text.replace("def tell(self)", "")  # the name that `io` prescribes
    text = CAMEL_CASE.sub("_", text)
    for banned, better in BANNED.items():
        for found in banned.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, found[0], better


def main() -> int:
    """Print every finding; 1 if there is any."""
    rows = {
        f"{path.relative_to(ROOT)}:{number}: {words!r}: write {better}"
        for pattern in PAGES
        for path in ROOT.glob(pattern)
        for number, words, better in findings(path.read_text())
    }
    print(*sorted(rows), sep="\n", end="\n" if rows else "")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
