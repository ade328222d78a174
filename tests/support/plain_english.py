"""Words that send a reader to a dictionary or to a second reading: `make check` keeps them out of the
project's text.

The text is the documents, and the docstrings, comments, messages and names of the product's own code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "contract",
    "storage",
    "sidecar",
    "webhook",
    "trainer",
    "components",
    "cli",
    "pipelines",
    "deploy",
)
PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "docs/*.md",
    *(f"{package}/**/*.{kind}" for package in PACKAGES for kind in ("py", "md")),
)
BETTER = {
    r"wish(?:es|ed)?": "setting, request, spec",
    r"anew": "again",
    r"aside": "to a partial file",
    r"besides?": "next to, in parallel, also",
    r"told|tells?": "report, notify, configure",
    r"brings?|brought": "download, fetch, stage",
    r"lies (?:there|at|in|on|below|here)|lie (?:there|at|in|on|below|here)": "is, exists",
    r"in hand": "current",
    r"what for": "why",
    r"whoever|whomever": "the caller",
    r"goes on|go on|went on": "continues, resumes",
    r"see that no": "avoid",
    r"one more:": "also",
    r"of nobody|by nobody|nobody's": "without an owner",
    r"(?:none|nothing) where there is (?:none|no)": "or None",
}
"""What is banned, and what to write instead."""
BANNED = re.compile(
    r"(?<![\w-])(?:" + "|".join(f"(?:{words})" for words in BETTER) + r")(?![\w-])", re.IGNORECASE
)
IN_NAMES = re.compile(r"wish|(?<![a-z-])(?:anew|aside|beside|told|tell|lacking)(?![a-z-])", re.IGNORECASE)


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, word, better) for each banned word of a text."""
    text = text.replace("def tell(self)", "")  # the name that `io` prescribes
    for number, line in enumerate(text.splitlines(), 1):
        for found in (*BANNED.finditer(line), *IN_NAMES.finditer(line)):
            word = found[0]
            better = next(
                (good for bad, good in BETTER.items() if re.fullmatch(bad, word, re.IGNORECASE)),
                "a term of the field",
            )
            yield number, word, better


def main() -> int:
    """Print every finding; 1 if there is any."""
    rows = {
        f"{path.relative_to(ROOT)}:{number}: {word!r}: write {better}"
        for pattern in PAGES
        for path in ROOT.glob(pattern)
        for number, word, better in findings(path.read_text())
    }
    print(*sorted(rows), sep="\n", end="\n" if rows else "")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
