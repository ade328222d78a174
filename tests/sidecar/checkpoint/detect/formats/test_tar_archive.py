import gzip
import io
import tarfile

import pytest

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats import tar_archive
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE
from tests.support.format_samples import cut, interrupted_saves, passed

CONTENT = {"weights": 3000, "folder/" + "long" * 40: 10, "none": 0}
MEMBERS = tuple(CONTENT.items())
END = 2 * 512


def save(file, kind=tarfile.PAX_FORMAT):
    with tarfile.open(fileobj=file, mode="w", format=kind) as archive:
        for name, size in CONTENT.items():
            member = tarfile.TarInfo(name)
            member.size = size
            archive.addfile(member, io.BytesIO(b"1" * size))


def saved(kind=tarfile.PAX_FORMAT) -> bytes:
    data = io.BytesIO()
    save(data, kind)
    return data.getvalue()


@pytest.mark.parametrize("suffix", [".tar", ".nemo", ".tgz", ".tar.gz"])
@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_an_archive_shows_its_members_but_not_which_are_missing(tmp_path, kind, suffix):
    path = tmp_path / f"w{suffix}"
    path.write_bytes(gzip.compress(saved(kind)) if "gz" in suffix else saved(kind))
    assert check_format(path) == (None, False, MEMBERS)


def test_an_archive_of_nemo_may_be_compressed(tmp_path):
    (tmp_path / "w.nemo").write_bytes(gzip.compress(saved()))
    assert check_format(tmp_path / "w.nemo").members == MEMBERS


def test_every_truncation_before_its_end_is_a_defect(tmp_path):
    data = saved(tarfile.GNU_FORMAT)
    needed = len(data.rstrip(b"\0"))
    needed += -needed % 512 + END
    lengths = {*range(600), *range(needed - 2 * END, needed), *range(0, needed, 37)}
    assert passed(cut(tmp_path / "w.tar", data, lengths)) == []
    assert passed(cut(tmp_path / "w.tar", data, range(needed, len(data), 99))) != []  # only padding


def test_every_truncation_of_a_compressed_archive_is_a_defect(tmp_path):
    assert passed(cut(tmp_path / "w.tgz", gzip.compress(saved()))) == []
    assert passed(cut(tmp_path / "w.pkl.gz", gzip.compress(b"content" * 9))) == []


def test_an_interrupted_save_has_no_end_before_all_members_are_there(tmp_path):
    verdicts = [check_format(tmp_path / "w.tar") for _ in interrupted_saves(tmp_path / "w.tar", save)]
    assert sum(verdict.defect is not None for verdict in verdicts) > 5
    assert {verdict for verdict in verdicts if verdict.defect is None} <= {
        INCONCLUSIVE,
        (None, False, MEMBERS),
    }


@pytest.mark.parametrize(("size", "there"), [(3000, 1000), (100_000, 50_000), (163_840, 90_000)])
def test_a_member_cut_short_in_an_archive_that_was_ended_is_not_like_a_whole_one(tmp_path, size, there):
    """A program that closes its archive whatever happens pads the member with zeros."""
    member = tarfile.TarInfo("weights")
    member.size = size
    with (tmp_path / "w.tar").open("wb") as file:
        archive = tarfile.open(fileobj=file, mode="w")  # noqa: SIM115 - closed as such a program does
        with pytest.raises(OSError, match="unexpected end"):
            archive.addfile(member, io.BytesIO(b"1" * there))
        archive.close()
    found = check_format(tmp_path / "w.tar")
    assert found.defect is not None or found == INCONCLUSIVE


def test_a_stream_of_another_kind_may_lack_something(tmp_path):
    (tmp_path / "w.pkl.gz").write_bytes(gzip.compress(b"content"))
    assert check_format(tmp_path / "w.pkl.gz") == INCONCLUSIVE


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *((name, b"of another kind" * 99) for name in ("w.tar", "w.tgz", "w.gz")),
        *((name, b"PK\x03\x04" + bytes(600)) for name in ("w.tgz", "w.gz")),
    ],
)
def test_another_format_is_inconclusive(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert check_format(tmp_path / name) == INCONCLUSIVE


def test_too_many_members_are_inconclusive(tmp_path, monkeypatch):
    monkeypatch.setattr(tar_archive, "MAX_MEMBERS", 2)
    (tmp_path / "w.tar").write_bytes(saved())
    assert check_format(tmp_path / "w.tar") == INCONCLUSIVE


def test_an_empty_file_has_just_begun(tmp_path):
    for name in ("w.tar", "w.gz"):
        (tmp_path / name).touch()
        assert check_format(tmp_path / name).defect == "it is empty"
