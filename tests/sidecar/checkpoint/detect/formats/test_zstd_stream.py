import struct

import pytest

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats import zstd_stream
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE
from tests.support.format_samples import cut, passed
from tests.support.zstd import zstd

FRAMES = [
    zstd.compress(b"content" * 500),
    zstd.compress(b"", options={zstd.CompressionParameter.checksum_flag: 1}),
    zstd.compress(bytes(300_000), options={zstd.CompressionParameter.content_size_flag: 0}),
    zstd.compress(bytes(range(256)) * 600, options={zstd.CompressionParameter.checksum_flag: 1}),
    struct.pack("<2I", 0x184D2A53, 5) + b"extra",
]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_stream_needs_its_last_byte(tmp_path, frame):
    path = tmp_path / "w.zst"
    path.write_bytes(frame)
    assert check_format(path) == INCONCLUSIVE
    assert passed(cut(path, frame)) == []


def test_frames_may_follow_one_another(tmp_path):
    path, ends = tmp_path / "w.zst", [len(b"".join(FRAMES[:number])) for number in range(1, len(FRAMES) + 1)]
    assert passed(cut(path, b"".join(FRAMES))) == ends[-2::-1]
    path.write_bytes(b"".join(FRAMES))
    assert check_format(path) == INCONCLUSIVE


@pytest.mark.parametrize("data", [b"of another kind", FRAMES[0] + b"and more"])
def test_another_format_is_inconclusive(tmp_path, data):
    (tmp_path / "w.zst").write_bytes(data)
    assert check_format(tmp_path / "w.zst") == INCONCLUSIVE


def test_too_many_blocks_are_inconclusive(tmp_path, monkeypatch):
    monkeypatch.setattr(zstd_stream, "MAX_BLOCKS", 1)
    (tmp_path / "w.zst").write_bytes(FRAMES[2][:-1])
    assert check_format(tmp_path / "w.zst") == INCONCLUSIVE
