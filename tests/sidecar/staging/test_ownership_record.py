from __future__ import annotations

import pytest

from podferry.contract.errors import FormatTooNew
from podferry.sidecar.staging.ownership_record import (
    RECORD,
    OwnershipRecord,
    boot_id,
    read_ownership,
    write_ownership,
)

OWN = OwnershipRecord("0" * 64, frozenset({"a/b", "c"}), "boot")
NOTHING = OwnershipRecord("", frozenset())


def test_a_record_is_read_as_it_was_written(tmp_path):
    assert read_ownership(tmp_path) == NOTHING
    write_ownership(tmp_path, OWN)
    assert read_ownership(tmp_path) == OWN
    write_ownership(tmp_path, NOTHING)
    assert read_ownership(tmp_path) == NOTHING


def test_a_record_of_an_earlier_version_is_read(tmp_path):
    (tmp_path / RECORD).write_text('{"digest": "d", "names": ["a"], "format": 1}')
    assert read_ownership(tmp_path) == OwnershipRecord("d", frozenset({"a"}))


@pytest.mark.parametrize("text", ["", "torn", '{"digest": "d"}', '{"digest": 1, "names": [], "format": 1}'])
def test_an_unreadable_record_owns_nothing(tmp_path, text):
    (tmp_path / RECORD).write_text(text)
    assert read_ownership(tmp_path) == NOTHING


def test_a_record_of_a_later_version_is_not_ignored(tmp_path):
    (tmp_path / RECORD).write_text('{"format": 2}')
    with pytest.raises(FormatTooNew):
        read_ownership(tmp_path)


def test_the_boot_does_not_change_while_the_machine_runs():
    assert boot_id() == boot_id()
