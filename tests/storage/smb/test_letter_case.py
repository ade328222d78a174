from __future__ import annotations

import struct

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.smb.directories import Lister
from podferry.storage.smb.information import NAME_OFFSET
from podferry.storage.smb.letter_case import LetterCase
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
