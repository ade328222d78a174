import io
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PODS = sorted(path.stem for path in (HERE / "manifests").glob("*.yaml"))
EXECUTOR = HERE.parents[1] / "data" / "kfp-pods" / "executor-fstring-annotated.json"


@pytest.mark.parametrize("name", PODS)
def test_golden(podferry, golden, name):
    said = podferry("explain", "-f", HERE / "manifests" / f"{name}.yaml")
    assert said.code == (1 if said.err else 0)
    golden(f"explain-{name}", said.out + said.err)


def test_every_golden_output_belongs_to_a_test():
    tests = "".join(path.read_text() for path in HERE.parent.rglob("test_*.py"))
    stems = [path.stem for path in (HERE.parent / "golden").iterdir()]
    assert stems
    assert [
        one for one in stems if f'"{one}"' not in tests and one.removeprefix("explain-") not in PODS
    ] == []


def test_a_kfp_step_golden(podferry, golden):
    words = ["dataset=$(inputs.uri)", "dataset-size=1Gi", "checkpoints=s3://ck", "checkpoint-size=1Mi"]
    given = [word for one in words for word in ("--annotation", one)]
    said = podferry("explain", "-f", EXECUTOR, *given)
    assert (said.code, said.err) == (0, "")
    golden("explain-kfp-step", said.out)


@pytest.fixture
def memory_is_a_store(monkeypatch):
    """The tests' store is in memory, which a pod could not use."""
    monkeypatch.setattr("podferry.contract.pod_locations.LOCAL_SCHEMES", ("file",))


@pytest.mark.usefixtures("memory_is_a_store")
def test_only_list_lists(podferry, digits):
    words = ("--annotation", f"dataset={digits}")
    assert "MEMORY" not in podferry("explain", *words).out
    said = podferry("explain", *words, "--list")
    assert said.code == 0
    assert "holds 73.5 KiB in 4 files" in said.out
    assert "MEMORY" in said.out
    assert "no memory sum" not in said.out
    gone = podferry("explain", "--annotation", "dataset=memory://digits/v2", "--list")
    assert (gone.code, "Did you mean memory://digits/v1?" in gone.err) == (1, True)


@pytest.mark.usefixtures("memory_is_a_store")
def test_list_counts_the_selected_files_of_each_dataset(podferry, digits):
    settings = [
        f"dataset={digits}",
        "include=*.png",
        "shard=1/2",
        f"dataset.all={digits}",
        "exclude.all=*.csv",
    ]
    said = podferry("explain", *(word for one in settings for word in ("--annotation", one)), "--list")
    assert said.code == 0, said.err
    assert f"note: {digits}, part 1/2, holds 4.9 KiB in 2 files" in said.out
    assert f"note: {digits} holds 73.3 KiB in 3 files" in said.out
    assert "no memory sum" not in said.out
    nothing = podferry(
        "explain",
        *(word for one in settings for word in ("--annotation", one)),
        "--list",
        "--annotation",
        "include.all=*.jpg",
    )
    assert (nothing.code, "none of 4 files matches *.jpg" in nothing.err) == (1, True)


def test_standard_input(podferry, monkeypatch):
    text = b"kind: Pod\nmetadata: {annotations: {podferry.io/inject: true}}\nspec: {containers: []}\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    said = podferry("explain", "-f", "-")
    assert (said.code, 'Quote it: "true"' in said.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "Give a file, or"),
        (["--annotation", "dataset"], 2, "write --annotation NAME=VALUE"),
        (["-f", "/nowhere/pod.yaml"], 1, "No such file or directory: /nowhere/pod.yaml"),
        (["-f", "/"], 1, "Is a directory"),
    ],
)
def test_usage_errors(podferry, words, code, said):
    answer = podferry("explain", *words)
    assert (answer.code, said in answer.err) == (code, True)
