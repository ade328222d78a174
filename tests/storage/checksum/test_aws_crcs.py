"""Amazon's CRCs are those of its module, whichever way they are loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest
from awscrt import checksums

from podferry.storage.checksum import aws_crcs

KINDS = ("crc32", "crc32c", "crc64nvme")


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_those_of_the_module(kind: str) -> None:
    made, first, second = aws_crcs._without_initialising(), b"a" * 70_001, bytearray(b"b" * 33)
    theirs, combined = getattr(checksums, kind), getattr(checksums, f"combine_{kind}")
    ours = getattr(made, kind)
    before = ours(first, 0)
    assert before == theirs(first)
    assert ours(memoryview(second), before) == theirs(bytes(second), before) == theirs(first + second)
    values = before, ours(second, 0), len(second)
    assert getattr(made, f"combine_{kind}")(*values) == combined(*values) == theirs(first + second)
    with pytest.raises(TypeError):
        ours(None, 0)


@pytest.mark.parametrize(
    "problem", [AttributeError("no symbol"), OSError("no file"), ValueError("another value")]
)
def test_otherwise_the_module_is_imported(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    def fail() -> None:
        raise problem

    monkeypatch.delitem(sys.modules, "_awscrt", raising=False)
    monkeypatch.setattr(aws_crcs, "_without_initialising", fail)
    monkeypatch.setattr(aws_crcs.importlib, "import_module", lambda name: name)
    assert aws_crcs.load_aws_crcs.__wrapped__() == "awscrt.checksums"


def test_a_value_that_is_not_the_known_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(aws_crcs.KNOWN, "crc32c", 1)
    with pytest.raises(ValueError, match="crc32c of"):
        aws_crcs._without_initialising()


USED = """
import sys
from podferry.storage.checksum.checksums import ChecksumKind, checksum_of
print(checksum_of(ChecksumKind.CRC32C, b"123456789"), "_awscrt" in sys.modules)
import awscrt.auth, awscrt.checksums
print(checksum_of(ChecksumKind.CRC64NVME, b"123456789"), awscrt.checksums.crc32c(b"123456789"))
"""


def test_the_library_itself_is_loaded_later_if_at_all() -> None:
    words = [sys.executable, "-c", USED + "\n"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "crc32c e3069283 False",
        f"crc64nvme ae8b14860a799888 {0xE3069283}",
    ]
