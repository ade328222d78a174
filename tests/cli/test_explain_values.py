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
