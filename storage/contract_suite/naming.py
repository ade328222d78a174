"""Names: odd ones are kept, and none leads out of the store."""

import pytest
from hypothesis import HealthCheck, given, settings

from podferry.contract.errors import AlreadyExists, InvalidSpec, PermanentError
from podferry.storage.contract_suite.inputs import NAMES, ODD_NAMES, names
from podferry.storage.engines import engine_of
from podferry.storage.store import Store, WriteMode


@pytest.fixture
def refused_characters(store: Store) -> str:
    """Those that the store does not take in a name, as its engine declares."""
    engine = engine_of(store.uri.scheme)
    schemes = engine.schemes if engine else ()
    return "".join(one.refused_characters for one in schemes if store.uri.scheme in one.names)


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_names_round_trip(store: Store, name: str, refused_characters: str) -> None:
    """Blanks, signs of URLs and other scripts stay in a name as they are."""
    await round_trip(store, name, refused_characters)


async def test_names_that_differ_in_case_are_not_mixed_up(store: Store) -> None:
    """Each has its own file, or the store refuses the second one."""
    await store.write("dir/Case", b"first")
    try:
        await store.write("dir/case", b"second")
    except PermanentError:
        assert await names(store) == ["dir/Case"]
    else:
        assert bytes(await store.read("dir/case")) == b"second"
    assert bytes(await store.read("dir/Case")) == b"first"


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES)
async def test_any_name_round_trips(store: Store, name: str, refused_characters: str) -> None:
    """So does any name without control characters, up to 30 of them."""
    await round_trip(store, name, refused_characters)


async def round_trip(store: Store, name: str, refused_characters: str) -> None:
    """Every call takes the name and returns it, or the store refuses it when it is written."""
    if any(character in name for character in refused_characters):
        with pytest.raises(InvalidSpec):
            await store.write("dir/" + name, b"odd")
        return
    await store.write("dir/" + name, b"odd")
    await store.write("dir/" + name, b"odder")
    assert await names(store) == ["dir/" + name]
    first, slash, _ = name.partition("/")
    assert await store.children("dir") == [first + slash]
    assert (await store.stat("dir/" + name)).name == "dir/" + name
    assert bytes(await store.read("dir/" + name, 1, 3)) == b"dde"
    with pytest.raises(AlreadyExists):
        await store.write("dir/" + name, b"x", WriteMode.CREATE)
    await store.delete(["dir/" + name])
    assert await names(store) == []


@pytest.mark.parametrize("name", ["", "..", "a/../b", "/a", "a/", "a//b", "./a", "tab\tbed"])
async def test_names_that_leave_the_store_are_refused(store: Store, name: str) -> None:
    """No name leads out of the store: each call raises `InvalidSpec`."""
    with pytest.raises(InvalidSpec):
        await store.stat(name)
    with pytest.raises(InvalidSpec):
        await store.read(name)
    with pytest.raises(InvalidSpec):
        await store.write(name, b"x")
    with pytest.raises(InvalidSpec):
        await store.delete([name])
