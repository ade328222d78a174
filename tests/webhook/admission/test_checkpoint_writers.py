from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.spec import CheckpointSpec, FerrySpec
from podferry.webhook.admission.checkpoint_writers import TemplateSpec, writer_warnings


def one(title: str, rank: int | None, world: int = 1, pods: int | None = 1, **changes: str) -> TemplateSpec:
    """A template whose pods after rank 0 only restore, as without `world`."""
    checkpoints = CheckpointSpec("s3://c", read_only=world == 1 and bool(rank))
    spec = FerrySpec(checkpoints=checkpoints, lineage=changes.get("lineage", "x"), world=world, rank=rank)
    return TemplateSpec(title, spec, pods)


@pytest.mark.parametrize(
    ("templates", "expected"),
    [
        ([], None),
        ([one("a", 0)], None),
        ([one("a", None)], None),
        ([one("a", 0, pods=8)], None),
        ([one("a", 0), one("b", 1, pods=3)], None),
        ([one("a", 0), one("b", 0, lineage="y")], None),
        ([one("a", 0), one("b", 0)], "a and b: each has a rank 0 of lineage x"),
        ([one("b", 1)], "b: none of these pods is rank 0"),
        ([one("a", None, pods=2)], "a: 2 pods without a rank share lineage x"),
        ([one("a", 0, 4, 1), one("b", 1, 4, 3)], None),
        ([one("a", 0, 4, 1), one("b", 1, 4, 2)], "a and b: podferry.io/world is 4, but there are 3 pods"),
        ([one("a", 0, 4, 1), one("b", 1, 4, None)], None),
    ],
)
def test_warnings(templates: list[TemplateSpec], expected: str | None) -> None:
    found = list(writer_warnings(templates))
    assert len(found) == (expected is not None)
    assert expected is None or found[0].startswith(expected)


def test_a_template_without_checkpoints_is_no_writer() -> None:
    assert list(writer_warnings([TemplateSpec("a", FerrySpec(lineage="x"), 4)])) == []


@given(
    st.lists(
        st.builds(
            one, st.text(), st.none() | st.integers(0, 3), st.integers(1, 3), st.none() | st.integers(0, 4)
        )
    )
)
def test_any_templates_are_judged(templates: list[TemplateSpec]) -> None:
    assert all(isinstance(text, str) for text in writer_warnings(templates))
