"""Validates a task's annotations when its pipeline is compiled, as far as their values are known."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from podferry.components.training.gpu_train.input_refs import TaskInputs
from podferry.contract.annotation_keys import split_key
from podferry.contract.annotation_values import SUBDOMAIN
from podferry.contract.annotations import read_annotations
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.spec import PREFIX
from podferry.contract.variable_substitution import INPUT_PREFIX, TOKEN, Variables

MAX_SIZE = "7Ei"
SAMPLE_HASH = "0" * 12
SAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "inject": "true",
        "dataset": "s3://podferry-sample-dataset/data",
        "dataset-path": "/dev/shm/podferry-sample-dataset",  # noqa: S108 - a sample, never opened
        "dataset-size": MAX_SIZE,
        "include": "*",
        "exclude": "*.podferry-sample",
        "file-mode": "0644",
        "unpack": "auto",
        "shard": "0/1",
        "medium": "memory",
        "mode": "copy",
        "checkpoints": "s3://podferry-sample-checkpoints/data",
        "checkpoint-path": "/dev/shm/podferry-sample-checkpoints",  # noqa: S108 - as above
        "checkpoint-size": "1Gi",
        "keep-local": "1",
        "keep-remote": "1",
        "restore": "auto",
        "complete": "auto",
        "upload-limit": "1Gi",
        "lineage": "sample",
        "world": "1",
        "outputs": "s3://podferry-sample-outputs/data",
        "output-path": "/dev/shm/podferry-sample-outputs",  # noqa: S108 - as above
        "output-size": "1Gi",
        "outputs-every": "60",
        "secret": "sample",
        "endpoint": "https://sample",
        "region": "sample",
        "dataset-secret": "sample",
        "dataset-endpoint": "https://sample",
        "dataset-region": "sample",
        "checkpoints-secret": "sample",
        "checkpoints-endpoint": "https://sample",
        "checkpoints-region": "sample",
        "outputs-secret": "sample",
        "outputs-endpoint": "https://sample",
        "outputs-region": "sample",
        "shm-size": "1Gi",
        "grace": "60",
        "container": "main",
    }
)
"""For each key a value that is valid with any others: replaces a value known only when the pipeline runs."""
UNIQUE_PER_DATASET = frozenset({"dataset", "dataset-path"})
"""Keys whose samples must differ between datasets."""


def annotation_problems(annotations: Mapping[str, str], inputs: TaskInputs) -> list[Problem]:
    """Return all errors in a task's annotations that are known at compile time; values may have variables."""
    known = dict.fromkeys(inputs.dynamic, "unknown") | dict(inputs.constants)
    variables = Variables(
        namespace="namespace",
        pipeline="pipeline",
        task="task",
        inputs=known,
        inputs_hash=SAMPLE_HASH,
        code_hash=SAMPLE_HASH,
        image_hash=SAMPLE_HASH,
    )
    sampled = {key: _sampled(key.removeprefix(PREFIX), text, inputs) for key, text in annotations.items()}
    try:
        read_annotations(sampled, variables, _declared(sampled))
    except InvalidSpec as error:
        return list(error.problems)
    return []


def _sampled(name: str, text: str, inputs: TaskInputs) -> str:
    """The text, or the key's sample if the text refers to a value known only when the pipeline runs."""
    variables = {match["name"] for match in TOKEN.finditer(text)}
    dynamic = any(INPUT_PREFIX + one in variables for one in inputs.dynamic)
    key, dataset = split_key(name)
    sample = SAMPLES.get(key, text)
    return (f"{sample}-{dataset}" if dataset and key in UNIQUE_PER_DATASET else sample) if dynamic else text


def _declared(annotations: Mapping[str, str]) -> dict[str, str]:
    """A plain word may be a dataset that the cluster's policy declares."""
    return {word: SAMPLES["dataset"] for word in locations_of(annotations) if SUBDOMAIN.fullmatch(word)}


def locations_of(annotations: Mapping[str, str]) -> list[str]:
    """The values of the dataset annotations."""
    return [text for key, text in annotations.items() if split_key(key.removeprefix(PREFIX))[0] == "dataset"]
