"""Names that stores must keep, and how long a test waits."""

from hypothesis import strategies as st

from podferry.contract.file_names import name_problem
from podferry.storage.store import Store

PATIENCE = 120.0
"""Seconds. Only a test that fails waits so long; a busy machine with a cold disk cache may stop for many."""
ODD_NAMES = [
    "with space",
    " leading",
    "trailing ",
    "per%cent",
    "per%20cent",
    "hash#tag",
    "question?mark=1&x=2",
    "plus+plus",
    "ünïcödé/日本語",
    "tilde~",
    "~home",
    "semi;colon,comma",
    "at@equals=",
    "quote'double\"",
    "star*[set]{a,b}",
    "back\\slash",
    "a:b",
    "<tag>&amp;",
    ".hidden/.x",
    "...",
    "trailing.",
    "-option",
    "emoji \N{GRINNING FACE}",
    "e\N{COMBINING ACUTE ACCENT}",  # is not the letter é, of which some file systems make it
    "l" * 200,
]
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn")), min_size=1, max_size=30).filter(
    lambda name: name_problem(name) is None
)


async def names(store: Store, prefix: str = "") -> list[str]:
    """All names below a directory, sorted."""
    return sorted([entry.name async for entry in store.entries(prefix)])
