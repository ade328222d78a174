from __future__ import annotations

import os
import time

import pytest

from podferry.sidecar.outputs import scan as scan_module
from podferry.sidecar.outputs.reread import Reread, Sent, reread
from podferry.sidecar.outputs.scan import StableReader
from podferry.sidecar.runtime.file_identity import FileIdentity

LONG_AGO = 1_600_000_000
NONE = frozenset[str]()


@pytest.fixture
def sent(tmp_path):
    """Two files, and what is known of them: `b` was modified last."""
    found = {}
    for name, age in {"a": 0, "b": 1}.items():
        (tmp_path / name).write_bytes(b"1234567")
        os.utime(tmp_path / name, (LONG_AGO + age,) * 2)
        reader = StableReader(tmp_path / name, FileIdentity.of((tmp_path / name).stat()))
        list(reader.body())
        found[name] = Sent(reader.read, reader.conclusive, reader.digest, 0.0)
    return found


def test_the_same_content_is_the_same(tmp_path, sent):
    assert reread(tmp_path, sent, time.monotonic() + 60) == Reread(NONE, frozenset("ab"), NONE)


def test_new_content_under_an_old_identity_is_seen(tmp_path, sent):
    (tmp_path / "a").write_bytes(b"7654321")
    os.utime(tmp_path / "a", (LONG_AGO,) * 2)
    assert FileIdentity.of((tmp_path / "a").stat()) == sent["a"].identity
    assert reread(tmp_path, sent, time.monotonic() + 60) == Reread(frozenset("a"), frozenset("b"), NONE)


def test_a_replaced_file_has_changed_and_a_removed_one_stays_as_it_was_sent(tmp_path, sent):
    (tmp_path / "other").write_bytes(b"1234567")
    (tmp_path / "other").replace(tmp_path / "a")
    (tmp_path / "b").unlink()
    assert reread(tmp_path, sent, time.monotonic() + 60) == Reread(frozenset("a"), frozenset("b"), NONE)


def test_the_last_modified_files_come_first_while_there_is_time(tmp_path, sent, monkeypatch):
    """A clock that moves by a second at each look, and files of two chunks."""
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 4)
    for until, left in {0: "ab", 2: "ab", 4: "a", 5: "a", 7: ""}.items():
        clock = iter(range(99))
        monkeypatch.setattr("podferry.sidecar.outputs.reread.time.monotonic", lambda clock=clock: next(clock))
        assert reread(tmp_path, sent, until).left == frozenset(left)
