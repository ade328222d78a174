"""What the golden pods do not show: variables and volumes that are no identity."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from podferry.contract.spec import FerrySpec
from podferry.webhook.pod.pod_identity import identity_of

Pod = dict[str, Any]
TOKEN = "/var/run/secrets/eks.amazonaws.com/serviceaccount/token"
ROLE = {"AWS_ROLE_ARN": "arn:aws:iam::1:role/x", "AWS_WEB_IDENTITY_TOKEN_FILE": TOKEN}
AUDIENCE = {"serviceAccountToken": {"audience": "sts.amazonaws.com", "path": "token"}}
VOLUME = {"name": "token", "projected": {"sources": [AUDIENCE]}}


@pytest.fixture
def pod() -> Callable[..., Pod]:
    """A pod whose trainer has these variables, and a volume for the token."""

    def make(variables: dict[str, str], volume: Pod = VOLUME, path: str = TOKEN.rpartition("/")[0]) -> Pod:
        env = [{"name": name, "value": value} for name, value in variables.items()]
        mounts = [{"name": "token", "mountPath": path}, {"name": "code", "mountPath": "/code"}]
        code = {"name": "code", "configMap": {"name": "code"}}
        trainer = {"name": "train", "env": env, "volumeMounts": mounts}
        return {"spec": {"containers": [trainer], "volumes": [copy.deepcopy(volume), code]}}

    return make


def found(pod: Pod, spec: FerrySpec) -> tuple[list[str], list[str]]:
    identity = identity_of(pod, pod["spec"]["containers"][0], spec)
    return [one["name"] for one in identity.env], [one["mountPath"] for one in identity.mounts]


def test_only_the_identity_is_copied(pod: Callable[..., Pod], spec: Callable[..., FerrySpec]) -> None:
    others = {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_PROFILE": "b",
        "HTTPS_PROXY": "c",
        "PATH": "/bin",
        "HOME": "/root",
    }
    names, paths = found(pod({**others, **ROLE}), spec(checkpoints="s3://c/x"))
    assert set(names) == set(ROLE)
    assert paths == [TOKEN.rpartition("/")[0]]


@pytest.mark.parametrize(
    "variables",
    [
        {"AWS_ROLE_ARN": "arn:aws:iam::1:role/x"},
        {"AWS_WEB_IDENTITY_TOKEN_FILE": TOKEN},
        {**ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/code/token"},
        {**ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/secrets/eks.amazonaws.com/serviceaccount-2/token"},
        {"AZURE_CLIENT_ID": "a", "AZURE_TENANT_ID": "b", "AZURE_CLIENT_SECRET": "c"},
        {"GOOGLE_APPLICATION_CREDENTIALS": "/code/key.json"},
        {"AWS_REGION": "eu-central-1"},
    ],
)
def test_half_an_identity_is_none(
    pod: Callable[..., Pod], spec: Callable[..., FerrySpec], variables: dict[str, str]
) -> None:
    assert found(pod(variables), spec(checkpoints="s3://c/x")) == ([], [])


@pytest.mark.parametrize("source", [{"secret": {"secretName": "keys"}}, {"emptyDir": {}}, {"hostPath": {}}])
def test_files_of_the_trainers_own_volumes_are_not_copied(
    pod: Callable[..., Pod], spec: Callable[..., FerrySpec], source: Pod
) -> None:
    made = pod(ROLE, {"name": "token", **source})
    assert found(made, spec(checkpoints="s3://c/x")) == ([], [])


def test_the_service_accounts_own_token_is_not_copied(
    pod: Callable[..., Pod], spec: Callable[..., FerrySpec]
) -> None:
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    variables = {**ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": f"{folder}/token"}
    assert found(pod(variables, path=folder), spec(checkpoints="s3://c/x")) == ([], [])


@pytest.mark.parametrize(
    ("settings", "copied"),
    [
        ({"checkpoints": "s3://c/x", "checkpoints_secret": "s"}, False),
        ({"dataset": "s3://d/x", "checkpoints": "s3://c/x", "secret": "s"}, False),
        ({"dataset": "s3://d/x", "checkpoints": "s3://c/x", "checkpoints_secret": "s"}, True),
        ({"outputs": "s3://o/x", "checkpoints": "s3://c/x", "outputs_secret": "s"}, True),
    ],
)
def test_a_direction_without_a_secret_uses_the_identity(
    pod: Callable[..., Pod], spec: Callable[..., FerrySpec], settings: dict[str, str], copied: bool
) -> None:
    assert bool(found(pod(ROLE), spec(**settings))[0]) is copied
