import copy
import random
from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.webhook.pod.json_patch import Draft, Path, apply, find, pointer

NAMES = st.sampled_from(["a", "b", "a/b", "c~d", "", "0"])
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["x", "y"])
DOCUMENTS = st.dictionaries(
    NAMES,
    st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8),
    max_size=4,
)


@given(DOCUMENTS, st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), LEAVES), max_size=5))
def test_operations_make_the_document(document: dict[str, Any], edits: list[tuple[list[str], Any]]) -> None:
    draft, before = Draft(document), copy.deepcopy(document)
    for path, value in edits:
        if all(isinstance(find(draft.document, tuple(path[:end])), dict | None) for end in range(len(path))):
            draft.set(tuple(path), value)
            assert find(draft.document, tuple(path)) == value
    assert document == before
    assert apply(document, draft.operations) == draft.document
    assert jsonpatch.apply_patch(document, draft.operations) == draft.document


@given(st.lists(st.integers()), st.lists(st.tuples(st.integers(0, 9), st.integers())))
def test_inserting_shifts_what_follows(items: list[int], edits: list[tuple[int, int]]) -> None:
    draft = Draft({"items": items})
    for at, value in edits:
        place = min(at, len(draft.document["items"]))
        draft.insert(("items",), place, value)
        draft.append(("items",), -value)
        assert draft.document["items"][place] == value
    assert jsonpatch.apply_patch({"items": items}, draft.operations) == draft.document
    assert apply({"items": items}, draft.operations) == draft.document


def test_what_is_missing_above_is_made_and_null_is_replaced() -> None:
    draft = Draft({"metadata": {"annotations": None}})
    draft.set(("metadata", "annotations", "podferry.io/status"), "injected")
    draft.append(("spec", "volumes"), {"name": "v"})
    assert draft.operations == [
        {"op": "replace", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/podferry.io~1status", "value": "injected"},
        {"op": "add", "path": "/spec", "value": {}},
        {"op": "add", "path": "/spec/volumes", "value": []},
        {"op": "add", "path": "/spec/volumes/-", "value": {"name": "v"}},
    ]


def test_appending_nothing_makes_no_list() -> None:
    draft = Draft({})
    draft.append(("items",))
    assert draft.operations == []
    draft.append(("items",), 1, 2)
    assert [operation["path"] for operation in draft.operations] == ["/items", "/items/-", "/items/-"]
    assert draft.document == {"items": [1, 2]}


def test_an_equal_value_is_no_edit() -> None:
    draft = Draft({"a": {"b": 1}})
    draft.set(("a", "b"), 1)
    assert draft.operations == []
    draft.set(("a", "b"), 2)
    assert draft.operations == [{"op": "replace", "path": "/a/b", "value": 2}]


def test_an_edit_inside_an_added_value_is_an_operation_of_its_own() -> None:
    added = {"name": "first", "env": [{"name": "A"}]}
    draft = Draft({"items": [{"name": "own"}]})
    draft.append(("items",), added)
    draft.append(("items", 1, "env"), {"name": "B"})
    draft.set(("items", 1, "name"), "second")
    assert added == {"name": "first", "env": [{"name": "A"}]}
    assert [operation["value"] for operation in draft.operations] == [added, {"name": "B"}, "second"]
    assert jsonpatch.apply_patch({"items": [{"name": "own"}]}, draft.operations) == draft.document


def test_only_the_way_to_an_edit_is_copied() -> None:
    pod: dict[str, Any] = {"metadata": {"labels": {}}, "spec": {"containers": [{"env": []}, {"env": []}]}}
    draft = Draft(pod)
    draft.append(("spec", "containers", 1, "env"), {"name": "A"})
    containers = draft.document["spec"]["containers"]
    assert draft.document["metadata"] is pod["metadata"]
    assert containers[0] is pod["spec"]["containers"][0]
    assert containers[1] is not pod["spec"]["containers"][1]
    assert pod["spec"]["containers"][1] == {"env": []}


def edited(draft: Draft, choose: Callable[[int], int]) -> None:
    """One random edit of a random object or list of the draft."""
    path: Path = ()
    node: Any = draft.document
    while isinstance(node, dict | list) and node and choose(4):
        step = sorted(node)[choose(len(node))] if isinstance(node, dict) else choose(len(node))
        if not isinstance(node[step], dict | list):
            break
        path, node = (*path, step), node[step]
    value = {"made": [choose(9)], "more": {}}
    if isinstance(node, list):
        draft.insert(path, choose(len(node) + 1), value) if choose(2) else draft.append(path, value)
    elif choose(2):
        draft.set((*path, "abc"[choose(3)], "made"), value)
    else:
        draft.set((*path, "new"), choose(9))


@pytest.mark.parametrize("name", ["executor-fstring", "executor-plain"])
@given(choices=st.randoms(use_true_random=False))
def test_edits_of_a_recorded_pod(recorded: Callable[[str], Any], name: str, choices: random.Random) -> None:
    pod = recorded(name)
    draft, before = Draft(pod), copy.deepcopy(pod)
    for _ in range(12):
        edited(draft, choices.randrange)
    assert pod == before
    assert jsonpatch.apply_patch(pod, copy.deepcopy(draft.operations)) == draft.document
    assert apply(pod, draft.operations) == draft.document


@pytest.mark.parametrize(
    ("path", "text"),
    [((), ""), (("a", 0, "-"), "/a/0/-"), (("podferry.io/x", "c~d"), "/podferry.io~1x/c~0d")],
)
def test_pointers(path: tuple[str | int, ...], text: str) -> None:
    assert pointer(path) == text


def test_find() -> None:
    document = {"a": [{"b": 1}], "c": None}
    assert find(document, ("a", 0, "b")) == 1
    for absent in (("a", 1, "b"), ("a", "b"), ("c", "d"), ("x",), ("a", 0, "b", "c")):
        assert find(document, absent) is None


def test_an_edit_after_a_move_finds_the_item_at_its_new_place() -> None:
    document = {"items": [{"name": "a"}, {"name": "b"}]}
    draft = Draft(document)
    draft.set(("items", 0, "seen"), True)
    draft.move(("items",), 0, 1)
    draft.set(("items", 0, "first"), True)
    assert draft.document == {"items": [{"name": "b", "first": True}, {"name": "a", "seen": True}]}
    assert apply(document, draft.operations) == draft.document
