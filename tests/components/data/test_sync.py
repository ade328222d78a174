"""The step `sync`, between folders and under KFP's local runner."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from pathlib import Path

import pytest
from kfp import dsl, local
from kfp.local import config

from podferry.components import ferry, store_access, sync
from podferry.components.data.sync import runner
from podferry.components.data.sync.component import sync as component
from podferry.components.data.sync.runner import Place, sync_dataset
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import CredentialsMissing, EmptyDataset, Refused


def test_the_destination_is_frozen_and_stays_the_same(
    digits: Path, destination: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = Place(str(digits)), Place(f"{destination}/copy")
    first = sync_dataset(*places)
    assert (first.moved, first.bytes, first.kept, first.removed) == (3, 300, 0, 0)
    reference = parse_reference(first.reference)
    assert (str(reference.uri), reference.files, reference.bytes) == (f"{destination}/copy", 3, 300)
    second = sync_dataset(*places)
    assert (second.reference, second.moved, second.kept) == (first.reference, 0, 3)
    assert "0 files moved, 0 B in" in capsys.readouterr().out
    (digits / "1.bin").write_bytes(b"other")
    (digits / "2.bin").unlink()
    third = sync_dataset(*places, delete=True)
    assert (third.moved, third.removed, parse_reference(third.reference).files) == (1, 1, 2)
    with ferry(third.reference) as f:
        assert f.dataset is not None
        assert sorted(path.name for path in f.dataset.iterdir()) == ["0.bin", "1.bin"]


def test_the_reference_of_a_selection_carries_it(digits: Path, destination: str) -> None:
    done = sync_dataset(Place(str(digits)), Place(f"{destination}/copy"), include="0.*, 1.*", exclude="1.bin")
    reference = parse_reference(done.reference)
    assert (reference.files, reference.include, reference.exclude) == (1, ("0.*", "1.*"), ("1.bin",))


def test_files_that_cannot_be_moved_fail_the_step(digits: Path, destination: str) -> None:
    Path(destination[7:], "copy", "1.bin").mkdir(parents=True)
    with pytest.raises(Refused, match=r"1\.bin"):
        sync_dataset(Place(str(digits)), Place(f"{destination}/copy"))
    with pytest.raises(EmptyDataset):
        sync_dataset(Place(f"{digits}x"), Place(f"{destination}/copy"), delete=True)


def test_a_secret_of_one_place_counts_before_that_of_both(
    digits: Path, destination: str, secret_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret_dir.mkdir()
    (secret_dir / "AWS_ACCESS_KEY_ID").write_text("x")
    assert store_access.secret_dir_for(tmp_path / "not-mounted") == secret_dir
    own = tmp_path / "own"
    own.mkdir()
    assert store_access.secret_dir_for(own) == own
    monkeypatch.setattr(runner, "SOURCE_SECRET_DIR", own)
    with pytest.raises(CredentialsMissing):
        sync_dataset(Place(str(digits)), Place(f"{destination}/copy"))


def test_the_component_ends_with_its_problems(
    digits: Path, destination: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = component.python_func(source=str(digits), destination=f"{destination}/copy")
    assert tuple(found[1:]) == (3, 300, 0, 0)
    with pytest.raises(SystemExit):
        component.python_func(source=f"{digits}x", destination=f"{destination}/copy")
    assert "error: the dataset" in capsys.readouterr().out


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def count(reference: str) -> int:
    from podferry.components import ferry  # noqa: PLC0415

    with ferry(reference) as f:
        return len(list(f.dataset.iterdir()))


@dsl.pipeline(name="sync-and-count")
def nightly(uri: str, out: str) -> int:
    copy = sync(uri, out, delete=True, source_secret="a", destination_secret="b", secret="unused-here")
    return count(reference=copy.outputs["reference"]).output


@pytest.mark.filterwarnings("ignore:.*have no effect in the current local runner:UserWarning")
def test_under_kfps_local_runner(digits: Path, destination: str, tmp_path: Path) -> None:
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "root"))
    try:
        assert nightly(uri=str(digits), out=f"{destination}/copy").output == 3
        (digits / "2.bin").unlink()
        assert nightly(uri=str(digits), out=f"{destination}/copy").output == 2
    finally:
        config.LocalExecutionConfig.instance = None
