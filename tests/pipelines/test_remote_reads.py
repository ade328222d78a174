"""Reads straight from the store, for comparison: on a cluster they need the credentials of the Secret."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import json_format
from PIL import Image

from podferry.pipelines.images.pipeline import images
from podferry.pipelines.read_write_split.pipeline import read_write_split
from podferry.pipelines.read_write_split.training import train
from podferry.pipelines.remote_reads import VARIABLES, reader_of
from tests.support.moto_server import moto_server
from tests.support.oss.bucket import StoredObject
from tests.support.oss.server import KEY_ID, KEY_SECRET, REGION, OssServer, serving

SECRET = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
}
"""As docs/kfp.md has it, next to the endpoint."""


@pytest.mark.parametrize("pipeline", [images, read_write_split], ids=["images", "read-write-split"])
def test_the_training_gets_the_keys_of_the_secret_as_the_variables_of_boto3(pipeline: Any) -> None:
    platform = json_format.MessageToDict(pipeline.platform_spec)["platforms"]["kubernetes"]
    [environment] = platform["deploymentSpec"]["executors"]["exec-train"]["secretAsEnv"]
    assert environment["secretName"] == "podferry-store"
    assert environment["optional"]  # a pod may have an identity in place of a Secret, and few have a token
    assert {one["secretKey"]: one["envVar"] for one in environment["keyToEnv"]} == VARIABLES


def test_files_are_read_by_name_with_these_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    with moto_server("data") as (endpoint, client):
        client.put_object(Bucket="data", Key="digits/train/0/1.png", Body=b"picture")
        for key, value in {**SECRET, "AWS_ENDPOINT_URL": endpoint}.items():
            monkeypatch.setenv(VARIABLES[key], value)
        read = reader_of("s3://data/digits#sha256=0&bytes=7&files=1")
        assert read("train/0/1.png") == b"picture"


@pytest.fixture
def oss(monkeypatch: pytest.MonkeyPatch) -> Iterator[OssServer]:
    """An imitation of OSS that the environment names."""
    with serving() as server:
        keys = {"OSS_ACCESS_KEY_ID": KEY_ID, "OSS_ACCESS_KEY_SECRET": KEY_SECRET}
        for name, value in {**keys, "OSS_REGION": REGION, "OSS_ENDPOINT": server.endpoint}.items():
            monkeypatch.setenv(VARIABLES[name], value)
        yield server


def test_files_are_read_from_oss_with_alibabas_sdk(oss: OssServer) -> None:
    oss.buckets["bucket"].objects["digits/0/1.png"] = StoredObject(b"picture")
    assert reader_of("oss://bucket/digits#sha256=0&bytes=7&files=1")("0/1.png") == b"picture"


def test_the_split_of_reads_and_writes_runs_on_oss(oss: OssServer) -> None:
    """Data through the stage, checkpoints by the agent, and both ways to load a batch are measured."""
    for number in range(16):
        file = io.BytesIO()
        Image.new("RGB", (8, 8), (16 * number, 0, 0)).save(file, "PNG")
        oss.buckets["bucket"].objects[f"pictures/{number % 2}/{number}.png"] = StoredObject(file.getvalue())
    found = train("oss://bucket/pictures", "oss://bucket/checkpoints", epochs=1, batch=4)
    assert min(found.staged_batch_ms, found.remote_batch_ms) > 0
    assert any("/commits/" in key for key in oss.buckets["bucket"].objects)
