"""SampleJobs, as in Paddle Operator's guide and its types."""

import pytest

from podferry.cache.manifests.sample_job import read_sample_job
from podferry.contract.errors import InvalidSpec

BASE = {
    "apiVersion": "batch.paddlepaddle.org/v1alpha1",
    "kind": "SampleJob",
    "metadata": {"name": "imagenet-job", "namespace": "paddle-system", "labels": {"a": "b"}},
}
SET = {"sampleSetRef": {"name": "imagenet"}}
CACHE = ("imagenet", "--namespace=paddle-system")
SYNC = {"source": "s3://data.s3.eu-1.amazonaws.com/x", "destination": "bos://b.bj.bcebos.com/y"}


def read(**spec):
    return read_sample_job({**BASE, "spec": {**SET, **spec}}, "job.yaml")


def problems(**spec):
    with pytest.raises(InvalidSpec) as raised:
        read(**spec)
    return [str(one) for one in raised.value.problems]


@pytest.mark.parametrize(
    ("spec", "verb", "words"),
    [
        ({"type": "warmup"}, "warmup", ("cache", "warmup", *CACHE)),
        ({"type": "clear"}, "clear", ("cache", "clear", *CACHE, "--empty")),
        (
            {"type": "rmr", "rmrOptions": {"paths": ["/train/a", "b"]}},
            "rmr",
            ("cache", "rmr", *CACHE, "train/a", "b", "--yes", "--missing-ok"),
        ),
        (
            {"type": "sync", "syncOptions": {"source": "bos://b.bj.bcebos.com/x", "delete-dst": True}},
            "sync",
            ("cache", "sync", *CACHE, "bos://b.bj.bcebos.com/x", "--delete"),
        ),
        (
            {"type": "sync", "syncOptions": {**SYNC, "include": "*.jpg", "dry": True, "delete-src": False}},
            "copy",
            (
                *("dataset", "sync", "s3://data/x", "bos://b.bj.bcebos.com/y"),
                *("--region=eu-1", "--include=*.jpg", "--dry-run"),
            ),
        ),
    ],
)
def test_each_type_is_a_verb(spec, verb, words):
    found = read(**spec)
    assert (found.verb, found.words, found.notes) == (verb, words, ())
    assert (found.name, found.cache, found.namespace) == ("imagenet-job", "imagenet", "paddle-system")


def test_older_names_a_schedule_and_a_secret():
    document = {**BASE, "metadata": {"name": "n"}}
    spec = {"type": "warmup", "sampleset": "imagenet", "schedule": "0 3 * * *", "secretRef": {"name": "s"}}
    found = read_sample_job({**document, "spec": spec}, "job.yaml")
    assert (found.namespace, found.schedule, found.secret) == ("default", "0 3 * * *", "s")


def test_keys_without_a_meaning_are_named():
    options = {"source": "s3://a/b", "threads": 8, "worker": ["x"], "update": True, "no-https": True}
    found = read(type="sync", syncOptions=options, terminate=True)
    assert [one.what for one in found.notes] == [
        "spec.syncOptions.threads is ignored",
        "spec.syncOptions.worker is ignored",
        "spec.syncOptions.update is ignored",
        "spec.syncOptions.no-https is ignored",
        "spec.terminate is ignored",
    ]
    found = read(type="warmup", warmupOptions={"paths": ["train"], "strategyName": "random"})
    assert all("all of its dataset" in str(one) for one in found.notes)


def test_everything_wrong_is_said_at_once():
    found = problems(
        type="sync",
        secretRef={"name": "s", "namespace": "other"},
        syncOptions={"delete-src": True, "start": "a", "dry": "yes", "sorce": "x"},
    )
    for text in (
        "delete-src",
        "ranges of names",
        "not true or false",
        "sorce",
        "source is missing",
        "s in other",
    ):
        assert sum(text in one for one in found) >= 1, (text, found)
    assert all(one.startswith("job.yaml: ") for one in found)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"type": "copy"}, "unknown type"),
        ({}, "spec.type is missing"),
        ({"type": "rmr"}, "spec.rmrOptions.paths is missing"),
        ({"type": "rmr", "rmrOptions": {"paths": "x"}}, "not a list of texts"),
        ({"type": "warmup", "sampleSetRef": "imagenet"}, "not a reference to a set"),
    ],
)
def test_what_is_missing_or_of_another_kind(spec, text):
    assert any(text in one for one in problems(**spec))


@pytest.mark.parametrize("document", [{**BASE, "kind": "SampleSet"}, [], "text"])
def test_another_kind(document):
    with pytest.raises(InvalidSpec, match="does not describe a job"):
        read_sample_job(document, "job.yaml")
