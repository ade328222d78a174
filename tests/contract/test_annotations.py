"""Golden annotations: each `annotation_cases/<case>.yaml` is read and compared with `<case>.expected`.

A case has `annotations` and, if needed, `variables` and `declared`. The expected result is the spec as
indented JSON, the text of the error, or the line `not opted in`. After an intended change, regenerate with
`PODFERRY_WRITE_GOLDEN=1 pytest tests/contract/test_annotations.py` and review the diff.
"""

import os
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.annotation_keys import KEYS
from podferry.contract.annotations import read_annotations, settings_of
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import FerrySpec
from podferry.contract.spec_json import decode_spec, encode_spec
from podferry.contract.variable_substitution import Variables

CASES_DIR = Path(__file__).parent / "annotation_cases"
CASES = sorted(path.stem for path in CASES_DIR.glob("*.yaml"))
PREFIX = "podferry.io/"
NAMED = [f"{key.name}.{name}" for key in KEYS.values() if key.per_dataset for name in ("a", "b-2")]
ANY_KEY = st.sampled_from([f"{PREFIX}{name}" for name in (*KEYS, *NAMED, "dataset.B", "grace.a", "include.")])


class Case(msgspec.Struct, forbid_unknown_fields=True):
    annotations: dict[str, str]
    variables: Variables = Variables()
    declared: dict[str, str] = {}


def read_case(name: str) -> Case:
    return msgspec.convert(yaml.safe_load((CASES_DIR / f"{name}.yaml").read_text()), Case)


def outcome(case: Case) -> str:
    try:
        spec = read_annotations(case.annotations, case.variables, case.declared)
    except InvalidSpec as error:
        return f"{error}\n"
    if spec is None:
        return "not opted in\n"
    return msgspec.json.format(encode_spec(spec), indent=2).decode() + "\n"


@pytest.mark.parametrize("name", CASES)
def test_golden_annotations(name: str) -> None:
    expected = CASES_DIR / f"{name}.expected"
    found = outcome(read_case(name))
    if os.environ.get("PODFERRY_WRITE_GOLDEN"):
        expected.write_text(found)
    assert found == expected.read_text()


def test_every_expectation_has_its_case() -> None:
    assert CASES
    assert sorted(path.stem for path in CASES_DIR.glob("*.expected")) == CASES


def test_golden_annotations_use_every_key() -> None:
    used = {name for case in CASES for name in settings_of(read_case(case).annotations)}
    assert set(KEYS) <= used


@pytest.mark.parametrize("name", CASES)
def test_a_golden_spec_survives_its_document(name: str) -> None:
    text = (CASES_DIR / f"{name}.expected").read_text()
    if text.startswith("{"):
        assert msgspec.json.format(encode_spec(decode_spec(text.encode())), indent=2).decode() + "\n" == text


@given(st.dictionaries(ANY_KEY, st.text(max_size=12) | st.sampled_from(["s3://b/d", "/d", "1Gi", "0/2"])))
def test_every_problem_names_an_annotation_that_was_written(annotations: dict[str, str]) -> None:
    problems = []
    try:
        read_annotations(annotations)
    except InvalidSpec as error:
        problems = [str(problem) for problem in error.problems]
    for problem in problems:
        assert any(key in problem and repr(text)[1:-1] in problem for key, text in annotations.items())


@pytest.mark.parametrize("text", ["\n\n", " relative "])
def test_blanks_around_a_value_are_shown_once(text: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_annotations({PREFIX + "dataset": "s3://b/d", PREFIX + "dataset-path": text})
    (problem,) = caught.value.problems
    assert problem.measured == repr(text)


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=5)))
def test_annotations_of_others_are_ignored(others: dict[str, str]) -> None:
    strangers = {key: text for key, text in others.items() if not key.startswith(PREFIX)}
    assert read_annotations(strangers) is None
    assert read_annotations({**strangers, PREFIX + "dataset": "s3://b/k"}) == read_annotations(
        {PREFIX + "dataset": "s3://b/k"}
    )


@given(st.dictionaries(st.sampled_from([*KEYS, "nonsense"]), st.text(max_size=5)))
def test_opting_out_overrides_everything(settings: dict[str, str]) -> None:
    annotations = {PREFIX + name: text for name, text in settings.items()}
    assert read_annotations({**annotations, PREFIX + "inject": "false"}) is None


def test_the_defaults_are_the_documented_ones() -> None:
    settings = {"dataset": "s3://b/d", "checkpoints": "s3://b/c", "outputs": "s3://b/o"}
    spec = read_annotations({PREFIX + name: uri for name, uri in settings.items()})
    assert isinstance(spec, FerrySpec)
    (dataset,) = spec.datasets
    assert spec.checkpoints is not None
    assert spec.outputs is not None
    documented = {name: key.default for name, key in KEYS.items()}
    assert documented["dataset-path"] == dataset.path
    assert documented["file-mode"] == f"{dataset.file_mode:04o}"
    assert (documented["unpack"], documented["medium"]) == (dataset.unpack, dataset.medium)
    assert (dataset.include, dataset.exclude, dataset.shard) == ((), (), None)
    assert documented["checkpoint-path"] == spec.checkpoints.path
    assert documented["output-path"] == spec.outputs.path
    assert documented["complete"] == spec.checkpoints.complete
    assert documented["keep-local"] == str(spec.checkpoints.keep_local)
    assert documented["restore"] == spec.checkpoints.restore
    assert documented["world"] == str(spec.world)


def test_a_hundred_datasets() -> None:
    sized = {"dataset": "s3://b/{}", "dataset-size": "1Mi"}
    annotations = {
        f"podferry.io/{key}.a{n}": text.format(n) for n in range(100) for key, text in sized.items()
    }
    spec = read_annotations(annotations)
    assert spec is not None
    assert len(spec.datasets) == 100
