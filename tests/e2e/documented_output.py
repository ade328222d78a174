"""Output of kubectl as the documents show it: with their names, without what differs between runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "kubernetes.md"
BLOCK = "<!-- {kind}: {name} -->\n```{language}\n"
SECTIONS = ("Annotations", "Status", "Init Containers", "Containers", "Volumes")
"""Of `kubectl describe pod`: the others say nothing about podferry."""
HEADING = re.compile(r"([A-Z][\w -]*):")
"""Of a section. The further lines of a message are not indented either."""
DIFFERING = re.compile(
    r"\s+(Container ID|Image ID|Port|Host Port|Started|Finished|SeccompProfile|Restart Count):.*"
)
REPLACED: Mapping[str, str] = {
    r"policy-hash: [0-9a-f]{12}": "policy-hash: 0123456789ab",
    r"signature: v1:\d+:[0-9a-f]{64}": f"signature: v1:1796000000:{'0123456789abcdef' * 4}",
    r"(PODFERRY_POD: +digits)-[a-z0-9]{5}\b": r"\1-x5vm8",
    r"(PODFERRY_(?:SPEC|CODE): +)\{.*": r"\1{...}",
    r"in \d+\.\d s": "in 0.1 s",
    r"kube-api-access-[a-z0-9]{5}": "kube-api-access-hx8z2",
    r"(Job|pod|pods)/?(.*\bdigits)-[a-z0-9]{5}\b": r"\1\2-x5vm8",
}


def commands() -> list[str]:
    """The commands of the page that a cluster runs, a text per block."""
    return re.findall(r"<!-- cluster: [^>]+ -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)


def block(name: str, kind: str = "seen", language: str = "text") -> str:
    """The text of a block of the page.

    Args:
        name: The name in its marker.
        kind: `seen` for what kubectl shows, `applied` for its input.
        language: The block's language.
    """
    _, mark, rest = PAGE.read_text().partition(BLOCK.format(kind=kind, name=name, language=language))
    assert mark, f"{PAGE} has no block marked {kind}: {name}"
    return rest.partition("```\n")[0]


def write(name: str, text: str) -> None:
    """Put a text into its block of the page."""
    page = PAGE.read_text()
    before, mark, rest = page.partition(BLOCK.format(kind="seen", name=name, language="text"))
    assert mark, f"{PAGE} has no block marked seen: {name}"
    _, end, after = rest.partition("```\n")
    PAGE.write_text(f"{before}{mark}{text}{end}{after}")


def marked() -> list[str]:
    """The names of all blocks that show what kubectl shows."""
    return re.findall(r"<!-- seen: (.+) -->", PAGE.read_text())


def described(text: str, sections: Sequence[str] = SECTIONS) -> str:
    """Sections of `kubectl describe pod`, without what differs from run to run."""
    kept, shown = [], False
    for line in text.splitlines():
        if heading := HEADING.match(line):
            shown = heading[1] in sections
        if shown and not DIFFERING.fullmatch(line):
            kept.append(line.rstrip())
    return "\n".join(kept) + "\n"


def part(text: str, name: str) -> str:
    """The section of `kubectl describe pod` about its last container."""
    _, mark, rest = text.partition(f"  {name}:\n")
    assert mark, f"no container {name} in\n{text}"
    return mark + rest


def columns(text: str) -> str:
    """A table with columns as narrow as its text permits."""
    rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def as_documented(text: str, names: Mapping[str, str]) -> str:
    """The text with the names of the documents.

    Args:
        text: What kubectl printed.
        names: The documents' name for each real one; longer ones first if one contains another.
    """
    for real, documented in names.items():
        text = text.replace(real, documented)
    for pattern, replacement in REPLACED.items():
        text = re.sub(pattern, replacement, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())
