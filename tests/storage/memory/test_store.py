from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store


async def test_stores_of_one_name_share_their_content(fresh):
    one, two = (open_store(parse_uri("memory://shared") / fresh) for _ in range(2))
    await one.write("a", b"x")
    assert bytes(await two.read("a")) == b"x"
    await one.close()
    assert bytes(await two.read("a")) == b"x"
    below = open_store(parse_uri("memory://shared") / fresh / "d")
    await below.write("b", b"y")
    assert sorted([entry.name async for entry in one.entries()]) == ["a", "d/b"]
