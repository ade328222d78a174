from __future__ import annotations

from podferry.contract.spec import Unpack as Mode
from tests.support.archive_site import TREE, tar_of, zip_of


async def test_unpacked_members_are_kept_by_the_next_start(site):
    site.put("x.tar", tar_of(TREE.items()))
    site.put("y.zip", zip_of([("y", b"1")]))
    await site.start()
    site.content.calls.clear()
    assert await site.start() == {*TREE, "y"}
    assert {name for call, name in site.content.calls if call == "read"} == set()
    (site.root / "d").write_bytes(b"12")
    await site.start()
    assert {name for call, name in site.content.calls if call == "read"} == {"x.tar"}
    assert site.held() == {**TREE, "y": b"1"}


async def test_members_are_trimmed_when_the_archive_changes(site):
    site.put("x.tar", tar_of(TREE.items()))
    await site.start()
    site.put("x.tar", tar_of([("other", b"1")]))
    await site.start()
    assert site.held() == {"other": b"1"}
    assert len(list((site.claims / "unpacked").iterdir())) == 1


async def test_members_are_trimmed_when_unpacking_is_switched_off(site):
    site.put("x.tar", tar_of(TREE.items()))
    await site.start()
    await site.start(Mode.NEVER)
    assert site.held() == {}
