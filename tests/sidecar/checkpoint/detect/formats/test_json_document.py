import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats import json_document
from podferry.sidecar.checkpoint.detect.formats.verdict import COMPLETE, INCONCLUSIVE
from tests.support.format_samples import cut, passed

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=60,
    deadline=None,
)
@given(
    st.dictionaries(st.text(), VALUES, min_size=1, max_size=3),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.data(),
)
def test_a_document_needs_its_last_byte(tmp_path, value, indent, ascii_only, chance):
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    path = tmp_path / "w.json"
    path.write_bytes(data)
    assert check_format(path) == COMPLETE
    lengths = chance.draw(st.sets(st.integers(0, len(data) - 1), max_size=20)) | {len(data) - 1}
    assert passed(cut(path, data, lengths)) == []


def test_lines_may_lack_the_last_but_none_is_cut(tmp_path):
    path, lines = tmp_path / "log.json", b'{"step": 1}\n{"step": 2}\n'
    path.write_bytes(lines)
    assert check_format(path) == INCONCLUSIVE
    assert passed(cut(path, lines, range(13, 23))) == []


@pytest.mark.parametrize("limit", ["MAX_BYTES", "MAX_SLOW_BYTES"])
def test_a_large_document_is_inconclusive(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(json_document, limit, 10)
    (tmp_path / "w.json").write_text('{"loss": NaN}')
    assert check_format(tmp_path / "w.json") == INCONCLUSIVE


def test_a_document_nested_too_deeply_is_inconclusive(tmp_path):
    (tmp_path / "w.json").write_text("[" * 100_000 + "]" * 100_000)
    assert check_format(tmp_path / "w.json") == INCONCLUSIVE
