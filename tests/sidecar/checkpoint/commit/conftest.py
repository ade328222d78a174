"""A lineage of four commits."""

from __future__ import annotations

import pytest

from tests.support.lineage_site import Lineage


@pytest.fixture
def lineage():
    """Four commits; the third refers to a file of the first."""
    made = Lineage()
    made.put(1, "a/w", "a/frozen")
    made.put(2, "b/w")
    made.put(3, "c/w", "a/frozen")
    made.put(4, "d/w")
    return made
