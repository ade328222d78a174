from __future__ import annotations

import asyncio
import struct

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.smb.directories import Lister
from podferry.storage.smb.information import NAME_OFFSET
from podferry.storage.smb.letter_case import LetterCase, NamesInFlight
from podferry.storage.smb.messages import HEADER, Response

URI = Uri("smb", "nas", "share/results")


@pytest.fixture
def case():
    return LetterCase(StoreLocation(URI), Lister(URI))


def named(path: str, status: int = 0) -> Response:
    """A server's response with the path of an open file."""
    name = path.encode("utf-16-le")
    body = bytes(NAME_OFFSET) + struct.pack("<I", len(name)) + name
    head = struct.pack("<HHI", 9, HEADER.size + 8, len(body))
    return Response(status, memoryview(bytes(HEADER.size) + head + body))


async def test_names_that_differ_only_in_case_are_written_one_after_the_other():
    names, running, most = NamesInFlight(), set[str](), []

    async def write(name: str) -> None:
        async with names.held(name):
            running.add(name)
            most.append(set(running))
            await asyncio.sleep(0)
            running.discard(name)

    await asyncio.gather(*(write(name) for name in ("a/B", "a/b", "a/B", "a/b", "Ä", "ä", "other")))
    assert all(len({name.lower() for name in one}) == len(one) for one in most)
    assert len(most) == 7
    assert not names._held


async def test_a_name_is_free_after_a_failed_write():
    names = NamesInFlight()
    with pytest.raises(ValueError, match="broken"):
        async with names.held("a"):
            raise ValueError("broken")
    async with asyncio.timeout(1), names.held("A"):
        pass


async def test_a_cancelled_wait_holds_nothing():
    names = NamesInFlight()
    async with names.held("a"):
        waiting = asyncio.create_task(names.held("A").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert not names._held


def test_the_server_s_spelling_of_directories(case):
    case.check_directories("runs/x", named("\\Share Root\\RESULTS\\runs\\.podferry-1.tmp"))
    with pytest.raises(InvalidSpec, match=r"results/runs/x is below .* only in case .* \(Runs\)"):
        case.check_directories("runs/x", named("\\results\\Runs\\.podferry-1.tmp"))


def test_the_server_s_spelling_of_a_written_file(case):
    case.check_written("a:b/x", named("\\results\\a\uf022b\\x"))
    with pytest.raises(InvalidSpec, match=r"has replaced a file .* \(X\)"):
        case.check_written("x", named("\\results\\X"))


@pytest.mark.parametrize("response", [named("", status=0xC00000BB), named(""), named("\\RUNS~1\\X~1")])
def test_a_server_that_does_not_know_the_name_refuses_nothing(case, response):
    case.check_directories("runs/x", response)
    case.check_written("runs/x", response)
