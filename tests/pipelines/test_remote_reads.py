"""Reads straight from the store, for comparison: on a cluster they need the credentials of the Secret."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format

from podferry.pipelines.images.pipeline import images
from podferry.pipelines.read_write_split.pipeline import read_write_split
from podferry.pipelines.remote_reads import VARIABLES, reader_of
from tests.support.moto_server import moto_server

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
