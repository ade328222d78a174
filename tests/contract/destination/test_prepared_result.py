from datetime import UTC, datetime

import pytest

from podferry.contract.destination.prepared_result import (
    PreparedResult,
    decode_result,
    encode_result,
    marker_name,
    result_key,
)
from podferry.contract.errors import Corrupt, InvalidSpec

DIGEST = "0" * 64
RESULT = PreparedResult("s3://a#x", "s3://b#y", {"size": 32}, ("convert",), datetime(2026, 1, 1, tzinfo=UTC))


def test_a_marker_survives_its_own_json():
    data = encode_result(RESULT)
    assert decode_result(data, "x") == RESULT
    with pytest.raises(Corrupt):
        decode_result(data.replace(b"32", b"33"), "x")


def test_the_key_depends_on_content_parameters_and_command_alone():
    key = result_key(DIGEST, {"a": 1, "b": [2]}, ["x"])
    assert len(key) == 32
    assert key == result_key(DIGEST, {"b": [2], "a": 1}, ("x",))
    others = [
        result_key("1" * 64, {"a": 1, "b": [2]}, ["x"]),
        result_key(DIGEST, {"a": 2, "b": [2]}, ["x"]),
        result_key(DIGEST, {"a": 1, "b": [2]}, ["y"]),
        result_key(DIGEST, {"a": 1, "b": [2]}),
    ]
    assert len({key, *others}) == 5
    assert marker_name(key, 2) == f".podferry/prepared/{key}-2.json"


def test_parameters_that_are_not_json_are_refused():
    with pytest.raises(InvalidSpec, match="not JSON"):
        result_key(DIGEST, {"f": object()})
