"""The step `dataset`: its runner, and its function as called by KFP's executor."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

import pytest
from kfp import dsl

from podferry.components.data.dataset.component import dataset
from podferry.components.data.dataset.runner import freeze_dataset
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import Changed, CredentialsMissing, EmptyDataset, InvalidSpec, Refused


def test_freezes_and_sizes(digits: Path) -> None:
    frozen = freeze_dataset(str(digits))
    reference = parse_reference(frozen.reference)
    assert (reference.bytes, reference.files, reference.frozen) == (300, 3, True)
    assert frozen.size == "17Mi"
    assert freeze_dataset(frozen.reference).reference == frozen.reference


def test_other_data_is_another_reference(digits: Path) -> None:
    before = freeze_dataset(str(digits)).reference
    (digits / "3.bin").write_bytes(b"more")
    assert freeze_dataset(str(digits)).reference != before
    with pytest.raises(Changed):
        freeze_dataset(before)


def test_a_selection_is_another_reference(digits: Path) -> None:
    frozen = freeze_dataset(str(digits), include="*.bin", exclude="0.*")
    assert parse_reference(frozen.reference).files == 2
    assert freeze_dataset(frozen.reference).reference == frozen.reference
    with pytest.raises(InvalidSpec, match=r"exclude selects other files .*\(1\.\*; frozen with 0\.\*\)"):
        freeze_dataset(frozen.reference, exclude="1.*")
    with pytest.raises(EmptyDataset, match=r"none of 3 files matches \*.png.*nearest names are .*0.bin"):
        freeze_dataset(str(digits), include="*.png")
    with pytest.raises(InvalidSpec, match="braces"):
        freeze_dataset(str(digits), include="*.{bin,png}")


@pytest.mark.parametrize("volume", ["17Mi", "12Ki"])
def test_what_fits_says_so(digits: Path, volume: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert freeze_dataset(str(digits), fits=volume).size == "17Mi"
    said = capsys.readouterr().out
    assert f"fits: 3 files of 300 B in a volume of {volume}" in said
    assert "data volume" in said
    assert "pod, added" in said


def test_what_does_not_fit_fails_with_the_numbers(digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Three started pages: 12 KiB.
    remedy = r"Set fits to \d+Ki; or set `medium` of gpu_train to disk"
    with pytest.raises(Refused, match=rf"the dataset is larger than its volume.*12.0 KiB.*8.0 KiB.*{remedy}"):
        freeze_dataset(str(digits), fits="8Ki")
    assert "data volume" in capsys.readouterr().out


def test_datasets_that_cannot_be_frozen_are_errors(digits: Path) -> None:
    with pytest.raises(EmptyDataset, match="Did you mean"):
        freeze_dataset(f"{digits}x")
    with pytest.raises(InvalidSpec, match="not a quantity"):
        freeze_dataset(str(digits), fits="much")


def test_a_mounted_secret_that_is_empty_is_missing(digits: Path, secret_dir: Path) -> None:
    secret_dir.mkdir()
    with pytest.raises(CredentialsMissing, match="there are no credentials in"):
        freeze_dataset(str(digits))


def test_the_component_writes_a_small_document(digits: Path, tmp_path: Path) -> None:
    data = dsl.Dataset(name="data", uri=str(tmp_path / "document"), metadata={})
    report = dsl.HTML(name="report", uri=str(tmp_path / "report"), metadata={})
    reference, files, size = dataset.python_func(data=data, report=report, uri=str(digits))
    assert f"<td>{escape(reference)}</td><td>3</td><td>300 B</td>" in (tmp_path / "report").read_text()
    document = json.loads((tmp_path / "document").read_text())
    assert (files, size) == (3, "17Mi")
    assert data.metadata == {"podferry-reference": reference, "bytes": 300, "files": 3}
    assert document == {
        "reference": reference,
        "uri": f"file://{digits}",
        "digest": parse_reference(reference).digest,
        "bytes": 300,
        "files": 3,
        "format": 1,
    }
