import json


def test_annotations_alone(podferry):
    words = ("--annotation", "dataset=s3://b/d", "--annotation", "podferry.io/dataset-size=1Gi")
    said = podferry("explain", *words, "-o", "json")
    [shown] = json.loads(said.out)
    assert (said.code, shown["spec"]["datasets"][0]["size"], shown["problems"]) == (0, 1 << 30, [])
    assert shown["memory"][-1]["what"] == "pod, added"
    assert {value["key"]: value["source"] for value in shown["values"]}["dataset-path"] == "default"


def test_an_unknown_size_is_a_note(podferry):
    said = podferry("explain", "--annotation", "dataset=s3://b/d")
    assert said.code == 0
    assert "note: no memory sum: the size of the dataset is unknown" in said.out


def test_declared_datasets(podferry):
    words = ("--annotation", "dataset=digits", "--declare", "digits=s3://d/digits#bytes=5&files=1")
    said = podferry("explain", *words)
    assert said.code == 0
    assert "s3://d/digits#bytes=5&files=1" in said.out


def test_who_writes_checkpoints_is_a_note(podferry, tmp_path):
    manifest = """
apiVersion: batch/v1
kind: Job
metadata: {name: digits}
spec:
  completionMode: Indexed
  template:
    metadata: {annotations: {podferry.io/checkpoints: s3://c, podferry.io/checkpoint-size: 1Mi}}
    spec: {containers: [{name: main}]}
"""
    (tmp_path / "job.yaml").write_text(manifest)
    said = podferry("explain", str(tmp_path / "job.yaml"))
    assert "without podferry.io/world, rank 0 alone writes checkpoints; other pods only restore" in said.out
    (tmp_path / "job.yaml").write_text(manifest.replace("1Mi}", '1Mi, podferry.io/world: "2"}'))
    assert "rank 0 alone" not in podferry("explain", str(tmp_path / "job.yaml")).out


def test_an_unclear_training_container_is_a_problem(podferry, tmp_path):
    (tmp_path / "pod.yaml").write_text("""
kind: Pod
metadata: {name: two, annotations: {podferry.io/dataset: s3://d, podferry.io/dataset-size: 1Mi}}
spec: {containers: [{name: main}, {name: logger}]}
""")
    said = podferry("explain", str(tmp_path / "pod.yaml"))
    assert said.code == 1
    assert "it is unclear which container trains (2 containers: main, logger)" in said.err
    named = podferry("explain", str(tmp_path / "pod.yaml"), "--annotation", "container=main")
    assert named.code == 0
