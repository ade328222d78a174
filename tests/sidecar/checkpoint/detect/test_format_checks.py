import pickle
import struct

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.detect.format_checks import (
    FORMAT_CHECKS,
    INCONCLUSIVE,
    check_format,
    missing_shards,
)
from tests.support.format_samples import SAMPLES


def defect(path):
    return check_format(path).defect


def verdict_of(path, data):
    path.write_bytes(data)
    return check_format(path)


LEGACY_TORCH = (
    b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"a": 1}, {"w": 2}, ["0"]))
    + struct.pack("<Q", 0x01580280)
    + b"X\xff\xff\xff\x7f"
)
"""torch's layout: pickles, then raw numbers, which may look like anything."""


reusing = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)


@reusing
@given(st.sampled_from(sorted(FORMAT_CHECKS)), st.binary(max_size=64))
@example(".safetensors", b"\x02" + b"\0" * 7 + b"[]")
@example(".safetensors", struct.pack("<Q", 30) + b'{"a":{"data_offsets":[0,"5"]}}')
@example(".safetensors", struct.pack("<Q", 26) + b'{"a":{"data_offsets":[0]}}')
@example(".json", b"[" * 100_000)
@example(".npz", b"PK\x03\x04PK\x05\x06" + b"\xff" * 18)
def test_no_content_makes_a_check_raise(tmp_path, suffix, data):
    path = tmp_path / f"w{suffix}"
    path.write_bytes(data)
    assert defect(path) is None or defect(path)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("w.pt", LEGACY_TORCH),
        ("w.pth", LEGACY_TORCH),
        ("w.pkl", LEGACY_TORCH),
        ("w.ckpt", b"of another kind"),
        ("w.ckpt", b"\x80\x06of another kind"),
        ("w.bin", b""),
        ("w.pdparams", b"x"),
        ("w.pdparams", bytes(64)),
        ("w.pkl", pickle.dumps(1) + b"and more"),
        ("w.pkl", b"BZh91AY&SY"),
        ("w.pkl", b"\x1f\x8b"),
        ("w.pkl", b"\x80\x02T\xff\xff\xff\xff."),
        ("w.bin", b"raw"),
        ("w.index", b"an index of another kind"),
        ("log.json", b'{"step": 1}\n{"step": 2}\n'),
        ("w.npz", b"PK\x05\x06" + b"\0" * 18),
    ],
)
def test_inconclusive_formats_have_no_defect(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert defect(tmp_path / name) is None


def test_every_suffix_of_the_table_is_checked_and_no_other(tmp_path):
    for suffix in {*FORMAT_CHECKS, ".txt.snapshot_iter_5", ".tar.gz", ".weights.h5"} - {".index"}:
        assert check_format(tmp_path / f"gone{suffix}").defect is not None
    assert check_format(tmp_path / "gone.raw") == INCONCLUSIVE


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_no_file_of_a_real_library_has_a_defect(name):
    assert check_format(SAMPLES / name).defect is None


@pytest.mark.parametrize("suffix", sorted(FORMAT_CHECKS))
@pytest.mark.parametrize("sample", [path.name for path in sorted(SAMPLES.iterdir()) if path.suffix != ".md"])
def test_no_part_of_any_file_makes_a_check_raise(tmp_path, suffix, sample):
    data = (SAMPLES / sample).read_bytes()
    for number in range(12):
        changed = bytearray(data)
        for place in range(number, len(data), 61):
            changed[place] ^= 1 << number % 8
        verdict = verdict_of(tmp_path / f"w{suffix}", bytes(changed[: len(data) - len(data) // 13 * number]))
        assert verdict.defect is None or verdict.conclusive


def test_a_deleted_file_is_reported_as_unreadable(tmp_path):
    assert "cannot be read" in defect(tmp_path / "gone.pt")


def test_every_shard_in_an_index_must_exist(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "m.safetensors.index.json").write_bytes(
        b'{"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-1.safetensors"}}'
    )
    names = ["s/m.safetensors.index.json", "s/m-1.safetensors"]
    assert "s/m-2.safetensors" in missing_shards(tmp_path, names)
    assert missing_shards(tmp_path, [*names, "s/m-2.safetensors"]) is None


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"weight_map": null}', '{"weight_map": [1]}', "{", "[" * 99999]
)
def test_an_index_of_another_kind_lists_nothing(tmp_path, text):
    (tmp_path / "x.index.json").write_text(text)
    assert missing_shards(tmp_path, ["x.index.json"]) is None


def test_a_deleted_index_lists_nothing(tmp_path):
    assert missing_shards(tmp_path, ["gone.index.json"]) is None


def test_shards_that_dcps_metadata_lists(tmp_path):
    """Two pods that save together: rank 0's has the list, and not the other one's shard."""
    (tmp_path / "step-3").mkdir()
    listed = {"w": "__1_0.distcp", "step": "__0_0.distcp", "again": "__0_0.distcp"}
    (tmp_path / "step-3" / ".metadata").write_bytes(pickle.dumps(listed))
    names = ["step-3/.metadata", "step-3/__0_0.distcp"]
    found = missing_shards(tmp_path, names, whole=True)
    assert found is not None
    assert found.startswith("step-3/.metadata lists step-3/__1_0.distcp, which is missing")
    assert "podferry.io/world" in found
    assert missing_shards(tmp_path, [*names, "step-3/__1_0.distcp"], whole=True) is None
    assert missing_shards(tmp_path, names) is None
    assert missing_shards(tmp_path, ["gone/.metadata"], whole=True) is None
