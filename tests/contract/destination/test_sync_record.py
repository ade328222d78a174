import pytest

from podferry.contract.destination.sync_record import (
    SyncedArchive,
    SyncedFile,
    SyncRecord,
    decode_sync_record,
    encode_sync_record,
)
from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.manifest import Entry

RECORD = SyncRecord(
    "s3://a/b",
    (SyncedFile("x", 3, '"1"', '"2"'),),
    (SyncedArchive(Entry("t.tar", 9, '"3"'), (Entry("m", 1, '"4"'),)),),
)


def test_a_record_survives_its_own_json():
    assert decode_sync_record(encode_sync_record(RECORD), "x") == RECORD


def test_a_damaged_record_and_a_later_format_are_errors():
    data = encode_sync_record(RECORD)
    with pytest.raises(Corrupt):
        decode_sync_record(data.replace(b'"x"', b'"y"'), "x")
    with pytest.raises(FormatTooNew):
        decode_sync_record(encode_sync_record(SyncRecord("s3://a/b", format=2)), "x")
