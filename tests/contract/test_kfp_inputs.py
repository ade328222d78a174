import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import InvalidSpec
from podferry.contract.kfp_inputs import KfpInputs, read_kfp_inputs, render
from podferry.contract.pod_owner import kfp_inputs_of

Pod = dict[str, Any]
RUN = "c6560994-25fc-4601-b7b5-e2fc66f94fe0"
EXPECTED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "executor-plain": ("two-step", "produce", {"n": 9}),
    "executor-annotated-emptydir": ("two-step", "consume", {"msg": "hello-9", "ratio": 0.5, "sleep_s": 25}),
    "executor-fstring": ("fstr", "cc", {"uri": "s3://real/c"}),
    "executor-fstring-annotated": (
        "fstr",
        "use",
        {
            "cfg": {"deep": [1, {"u": "s3://z/y"}]},
            "flag": False,
            "opt": "dflt",
            "uri": "s3://real/data/u3/x.bin",
            "uri2": "real",
        },
    ),
    "executor-parallelfor": (
        "more",
        "each",
        {"b": True, "d": {"k": 1, "n": "w"}, "f": 1.5, "l": [1, "two"], "x": "x2"},
    ),
    "executor-retry": ("more", "flaky", {"i": 1}),
}


def inputs_of(pod: Pod) -> KfpInputs:
    found = kfp_inputs_of(pod)
    assert found is not None
    return found


def test_recorded_executors_give_their_inputs(recorded: Callable[[str], Pod], executor_name: str) -> None:
    inputs = inputs_of(recorded(executor_name))
    assert (inputs.pipeline, inputs.component, inputs.parameters) == EXPECTED[executor_name]
    assert len(inputs.run_id) == 36
    assert inputs.run_id == recorded(executor_name)["metadata"]["labels"]["pipeline/runid"]


def test_recorded_pods_of_other_kinds_have_none(recorded: Callable[[str], Pod], other_name: str) -> None:
    assert kfp_inputs_of(recorded(other_name)) is None


def test_texts_are_what_the_launcher_would_put_in(recorded: Callable[[str], Pod]) -> None:
    texts = inputs_of(recorded("executor-parallelfor")).texts
    assert texts == {"b": "true", "d": '{"k":1,"n":"w"}', "f": "1.5", "l": '[1,"two"]', "x": "x2"}


def test_an_artifact_without_a_reference_is_its_uri(recorded: Callable[[str], Pod]) -> None:
    inputs = inputs_of(recorded("executor-annotated-emptydir"))
    assert inputs.texts["data"].startswith(f"minio://mlpipeline/v2/artifacts/two-step/{RUN}/produce/")
    assert inputs.artifacts["data"][0].identity is None


def artifact(uri: str, **metadata: Any) -> Pod:
    return {"data": {"artifacts": [{"name": "1", "uri": uri, "metadata": metadata}]}}


def test_an_artifact_is_the_reference_in_its_metadata(executor: Callable[..., Pod]) -> None:
    found = artifact("minio://root/x", **{"podferry-reference": "s3://b/k#bytes=3", "rows": 9.0})
    assert inputs_of(executor({}, artifacts=found)).texts == {"data": "s3://b/k#bytes=3"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b", "a b"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (7.0, "7"),
        (-0.5, "-0.5"),
        (1e-7, "0.0000001"),
        (1e22, "10000000000000000000000"),
        ([1.0, {"b": 2.5, "a": None}], '[1,{"a":null,"b":2.5}]'),
        ({}, "{}"),
    ],
)
def test_values_as_text(value: object, text: str) -> None:
    assert render(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_as_text_is_the_number(value: float) -> None:
    assert float(render(value)) == value
    assert "e" not in render(value)


def test_f_strings_of_all_types_are_filled_in(executor: Callable[..., Pod]) -> None:
    part = "{{$.inputs.parameters['pipelinechannel--%s']}}"
    given = {
        "pipelinechannel--n": 3.0,
        "pipelinechannel--b": True,
        "pipelinechannel--q": 'say "hi"',
        "u": f"{part % 'n'}-{part % 'b'}-{part % 'q'}",
        "d": {"k": [part % "n", {"x": part % "q"}]},
        "unknown": part % "nowhere",
    }
    parameters = inputs_of(executor(given)).parameters
    assert parameters == {
        "u": '3-true-say "hi"',
        "d": {"k": ["3", {"x": 'say "hi"'}]},
        "unknown": part % "nowhere",
    }


def test_defaults_count_like_given_values(executor: Callable[..., Pod]) -> None:
    spec = {
        "parameters": {"lr": {"defaultValue": 0.1}, "opt": {"isOptional": True}, "n": {"defaultValue": 7}}
    }
    left, said = inputs_of(executor({"n": 8}, spec)), inputs_of(executor({"n": 8.0, "lr": 0.1}, spec))
    assert left.parameters == {"lr": 0.1, "n": 8}
    assert left.digest == said.digest


def test_what_kfp_fills_in_itself_does_not_distinguish_runs(executor: Callable[..., Pod]) -> None:
    spec = {"parameters": {"lr": {"parameterType": "NUMBER_DOUBLE"}, "c": {"parameterType": "TASK_CONFIG"}}}
    small, large = ({"lr": 0.1, "c": {"resources": {"limits": {"memory": text}}}} for text in ("1Gi", "2Gi"))
    assert inputs_of(executor(small, spec)).parameters == {"lr": 0.1}
    assert inputs_of(executor(small, spec)).digest == inputs_of(executor(large, spec)).digest


JSON = st.recursive(
    st.booleans()
    | st.integers(-(2**50), 2**50)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
VALUES = st.dictionaries(st.from_regex(r"[a-d]{1,2}", fullmatch=True), JSON, max_size=3)


@given(one=VALUES, other=VALUES)
def test_equal_inputs_and_only_they_have_one_hash(
    executor: Callable[..., Pod], one: dict[str, Any], other: dict[str, Any]
) -> None:
    same = render(one) == render(other)
    assert (inputs_of(executor(one)).digest == inputs_of(executor(other)).digest) == same


def test_the_hash_is_twelve_hexadecimal_digits_for_ever(recorded: Callable[[str], Pod]) -> None:
    digests = {name: inputs_of(recorded(name)).digest for name in EXPECTED}
    assert digests == {
        "executor-annotated-emptydir": "5442ed206f49",
        "executor-fstring-annotated": "a708555af747",
        "executor-fstring": "a4a6d77aadad",
        "executor-parallelfor": "baaefee69ecc",
        "executor-plain": "ed1afb14c813",
        "executor-retry": "186f0ca233bf",
    }


def test_the_hash_of_a_re_run_is_the_same(executor: Callable[..., Pod]) -> None:
    def digest(uri: str, **metadata: Any) -> str:
        return inputs_of(executor({"n": 1}, artifacts=artifact(uri, **metadata))).digest

    root, other = f"minio://root/pipe/{RUN}/data/out", f"minio://root/pipe/{RUN.replace('c', 'd')}/data/out"
    assert digest(root, rows=1) == digest(other, rows=2)
    assert digest(root, **{"podferry-reference": "s3://b/1"}) == digest(
        other, **{"podferry-reference": "s3://b/1"}
    )
    assert digest(root, **{"podferry-reference": "s3://b/1"}) != digest(
        root, **{"podferry-reference": "s3://b/2"}
    )
    assert digest(root, sha256="1") != digest(root, sha256="2")
    assert digest("s3://models/base") != digest("s3://models/large")


@pytest.mark.parametrize(
    "command",
    [
        ["--executor_input", "{{$}}"],
        ["--executor_input", "[]"],
        ["--executor_input", '{"inputs":{"parameterValues":[]}}'],
        ["--executor_input", "{}", "--component_spec", "{"],
    ],
)
def test_documents_that_cannot_be_read_are_refused(command: list[str]) -> None:
    with pytest.raises(InvalidSpec, match="the KFP launcher's --"):
        read_kfp_inputs(command)


def test_a_command_without_the_flag_is_no_executor() -> None:
    assert read_kfp_inputs(["python", "train.py"]) is None
    assert read_kfp_inputs(["launch", "--executor_input"]) is None
    inputs = read_kfp_inputs(["--executor_input={}"])
    assert inputs is not None
    assert inputs.texts == {}


@pytest.mark.parametrize(
    ("output_file", "run"),
    [
        (
            "/root/demo-2026-11-21-02-01-33-582610/train/executor_output.json",
            "demo-2026-11-21-02-01-33-582610",
        ),
        ("/root/demo-2026-11-21-02-01-33-582610/inner/train/o.json", "demo-2026-11-21-02-01-33-582610"),
        (f"/minio/bucket/two-step/{RUN}/train/1e6daf97-dd77-4ecc-b9dd-135b4e2e4010/o.json", RUN),
        (f"/minio/bucket/two-step/{RUN}/train/o.json", RUN),
        ("/elsewhere/train/o.json", ""),
        ("", ""),
    ],
)
def test_without_a_flag_the_run_is_the_folder_of_its_outputs(output_file: str, run: str) -> None:
    document = json.dumps({"inputs": {}, "outputs": {"outputFile": output_file}})
    inputs = read_kfp_inputs(["--executor_input", document])
    assert inputs is not None
    assert inputs.run_id == run
    flagged = read_kfp_inputs(["--run_id", "run-1", "--executor_input", document])
    assert flagged is not None
    assert flagged.run_id == "run-1"


def test_a_location_in_a_local_runs_folder_is_no_identity(executor: Callable[..., Pod]) -> None:
    def digest(uri: str) -> str:
        artifacts = {"data": {"artifacts": [{"uri": uri}]}}
        return inputs_of(executor({}, artifacts=artifacts)).digest

    assert digest("/r/demo-2026-11-21-02-01-33-582610/a/data") == digest(
        "/r/demo-2026-11-22-03-00-00-000001/a/data"
    )
    assert digest("/r/demo-1/a/data") != digest("/r/demo-2/a/data")


def test_compiler_added_inputs_do_not_distinguish_runs(
    executor: Callable[..., Pod],
) -> None:
    plain = inputs_of(executor({"lr": 1}))
    given = {
        "lr": 1,
        "memory_limit": "{{$.inputs.parameters['pipelinechannel--a']}}",
        "pipelinechannel--a": "2Gi",
    }
    assert inputs_of(executor(given)).digest == plain.digest
    declared = {"parameters": {"memory_limit": {"parameterType": "STRING"}}}
    assert inputs_of(executor(given, spec=declared)).parameters == {"lr": 1, "memory_limit": "2Gi"}
