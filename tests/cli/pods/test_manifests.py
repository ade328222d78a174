from pathlib import Path

import pytest

HERE = Path(__file__).parent
RECORDED = sorted((HERE.parents[1] / "data" / "kfp-pods").glob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_kfp_pods_are_read(podferry, path):
    assert RECORDED
    said = podferry("explain", "-f", path)
    assert (said.code, said.err) == (0, "")
    assert "podferry leaves it alone" in said.out or "annotation" in said.out


def test_a_jobset_of_several_jobs_needs_the_world_for_a_rank(podferry, tmp_path):
    text = (
        (HERE / "manifests" / "several.yaml")
        .read_text()
        .replace("- name: workers", "- name: workers\n    replicas: 2")
    )
    (tmp_path / "pod.yaml").write_text(text)
    said = podferry("explain", "-f", tmp_path / "pod.yaml")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "a JobSet of several Jobs also needs podferry.io/world" in said.err
    (tmp_path / "pod.yaml").write_text(
        text.replace("dataset-size: 4Gi", 'dataset-size: 4Gi, podferry.io/world: "8"')
    )
    assert podferry("explain", "-f", tmp_path / "pod.yaml").code == 0


DEEP = " nest"
"""Of "nested more than 1,000 deep", or of "maximum nesting depth" from libyaml, whose versions differ."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: [1\nb: }", "is not YAML"),
        (b"\xff\xfe\x00", "is not text"),
        (b"", "contains no pod (no document)"),
        (b"kind: ConfigMap", "contains no pod (ConfigMap)"),
        (b"[" * 1_000, "is not YAML"),
        (b"[" * 1_000_000, DEEP),
        (b"- " * 1_000_000, DEEP),
        (b"{a: " * 1_000_000, DEEP),
        (b"d: 2001-99-99", "is not YAML"),
        (b"a: &a [*a]\nspec: {containers: 3}", "is malformed"),
        (b"spec: {containers: []}\nmetadata: {ownerReferences: [{}]}", "is malformed"),
        (b"- 1\n- {metadata: 3, spec: {containers: []}}", "is malformed"),
    ],
)
def test_input_without_a_pod_is_an_error_message(podferry, tmp_path, text, said):
    (tmp_path / "pod.yaml").write_bytes(text)
    answer = podferry("explain", "-f", tmp_path / "pod.yaml")
    assert answer.code == 1
    assert said in answer.err
    assert "Traceback" not in answer.err
