import ast
from pathlib import Path

import pytest

from podferry.contract.errors import AlreadyExists
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.memory.store import Content, MemoryStore
from podferry.storage.store import WriteMode

ROOT = Path(__file__).parents[4]
ALONE = "sidecar/checkpoint/commit/lineage_store.py"


@pytest.fixture
def run() -> LineageStore:
    content = Content()
    content.objects = {"base/run/a/w": b"1", "base/run/b": b"22", "base/runs/c": b"333"}
    return LineageStore(MemoryStore(parse_uri("memory://lineage/base"), content), "run")


async def test_names_are_relative_to_the_lineage(run: LineageStore) -> None:
    assert sorted([(entry.name, entry.size) async for entry in run.entries()]) == [("a/w", 1), ("b", 2)]
    assert [entry.name async for entry in run.entries("a")] == ["a/w"]
    assert await run.children() == ["a/", "b"]
    assert await run.children("a") == ["w"]
    found = await run.stat("a/w")
    assert (found.name, found.size) == ("a/w", 1)
    assert bytes(await run.read("b", 1, 1)) == b"2"


async def test_other_lineages_are_out_of_reach(run: LineageStore) -> None:
    await run.write("c", b"4")
    with pytest.raises(AlreadyExists):
        await run.write("c", b"5", WriteMode.CREATE)
    await run.delete(["c", "b"])
    assert [entry.name async for entry in run.destination.entries("runs")] == ["runs/c"]
    assert [entry.name async for entry in run.entries()] == ["a/w"]


async def test_a_document_is_decoded_with_its_uri(run: LineageStore) -> None:
    assert await run.load("b", lambda data, uri: (data, uri)) == (b"22", "memory://lineage/base/run/b")
    assert str(run.uri) == "memory://lineage/base/run"
    assert run.path("b") == "run/b"


def joins_a_lineage(node: ast.AST) -> bool:
    """Whether an f-string or a division puts a name below a lineage's."""
    if isinstance(node, ast.JoinedStr):
        following = zip(node.values, node.values[1:], strict=False)
        return any(
            isinstance(value, ast.FormattedValue)
            and names_a_lineage(value.value)
            and isinstance(after, ast.Constant)
            and str(after.value).startswith("/")
            for value, after in following
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return names_a_lineage(node.left)
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and is_joined(node.left)


def is_joined(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and names_a_lineage(node.right)


def names_a_lineage(node: ast.AST) -> bool:
    name = getattr(node, "attr", None) or getattr(node, "id", "")
    return "lineage" in name.lower()


@pytest.mark.parametrize(
    "source", ['f"{a.lineage}/x"', 'lineage + "/x"', "uri / commit.lineage / file.object"]
)
def test_joins_are_recognized(source: str) -> None:
    assert any(map(joins_a_lineage, ast.walk(ast.parse(source))))


def test_no_other_module_joins_a_lineage_to_a_name() -> None:
    modules = [
        path for package in ("sidecar", "cli", "components") for path in (ROOT / package).rglob("*.py")
    ]
    joins = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules
        if path != ROOT / ALONE
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.expr) and joins_a_lineage(node)
    ]
    assert len(modules) > 100
    assert not joins
