import io
import zipfile

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE
from tests.support.format_samples import cut, interrupted_saves, passed


def save(file):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", b"1" * 1000)
        archive.writestr("b", b"2" * 1000)


def test_an_archive_shows_its_members_but_not_which_are_missing(tmp_path):
    save(tmp_path / "w.zip")
    assert check_format(tmp_path / "w.zip") == (None, False, (("a", 1000), ("b", 1000)))


def test_every_truncation_is_a_defect(tmp_path):
    data = io.BytesIO()
    save(data)
    assert passed(cut(tmp_path / "w.zip", data.getvalue())) == []


def test_an_interrupted_save_is_never_certain_and_shows_fewer_or_smaller_members(tmp_path):
    path = tmp_path / "w.zip"
    whole = {("a", 1000), ("b", 1000)}
    verdicts = [check_format(path) for _ in interrupted_saves(path, save)]
    well_formed = [verdict for verdict in verdicts if verdict.defect is None]
    assert len(well_formed) >= 3
    assert not any(verdict.conclusive or set(verdict.members) == whole for verdict in well_formed)


def test_an_empty_file_has_just_begun(tmp_path):
    (tmp_path / "w.zip").touch()
    assert check_format(tmp_path / "w.zip").defect == "it is empty"


def test_another_format_is_inconclusive(tmp_path):
    (tmp_path / "w.zip").write_bytes(b"of another kind")
    assert check_format(tmp_path / "w.zip") == INCONCLUSIVE
