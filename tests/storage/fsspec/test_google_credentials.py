import json

import pytest

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.fsspec.engine import SECRET_KEYS
from podferry.storage.fsspec.google_credentials import google_token
from podferry.storage.fsspec.options import options_for
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS

ACCOUNT = {"type": "service_account", "client_email": "a@b", "private_key": "hunter2"}
FEDERATED = {
    "type": "external_account",
    "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    "token_url": "https://sts.googleapis.com/v1/token",
    "credential_source": {"file": "/var/run/token"},
}


def test_no_credentials_are_googles_default_search():
    assert google_token({}) == "google_default"
    assert google_token({"GOOGLE_SKIP_SIGNATURE": "true", "key.json": "{}"}) == "anon"


@pytest.mark.parametrize("name", ["GOOGLE_APPLICATION_CREDENTIALS", *SECRET_KEYS])
def test_the_json_of_a_secrets_key(name):
    held = {"other": "x", name: json.dumps(ACCOUNT, indent=2)}
    assert google_token(held) == ACCOUNT
    options = options_for(Uri("gs", "b"), StoreConfig(credentials=held), LIMITS)
    assert options.options["token"] == ACCOUNT
    assert options.location.credentials == (name,)
    assert "hunter2" not in repr(options)


def test_a_file_of_the_environment(tmp_path):
    file = tmp_path / "key.json"
    file.write_text(json.dumps(ACCOUNT))
    assert google_token({"GOOGLE_APPLICATION_CREDENTIALS": str(file)}) == ACCOUNT
    with pytest.raises(CredentialsMissing, match=r"none\.json: FileNotFoundError"):
        google_token({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "none.json")})


@pytest.mark.parametrize("text", ['{"private": "hunter2"', "hunter2", "[1]"])
def test_what_is_no_json_is_refused_and_not_printed(text):
    with pytest.raises(InvalidSpec) as caught:
        google_token({"key.json": text})
    assert "hunter2" not in str(caught.value)


def test_other_types_are_refused_without_their_content():
    pytest.importorskip("google.auth", reason="the extra gcs; tests/servers has it")
    with pytest.raises(InvalidSpec, match="type 'other'") as caught:
        google_token({"key.json": json.dumps({"type": "other", "private": "hunter2"})})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["eyJwcml2YXRlX2tleSI6ICJwYTU1In0=", '"private_key": "pa55"'])
def test_a_key_that_is_no_path_is_not_shown(key):
    """It may have been encoded twice."""
    with pytest.raises(CredentialsMissing, match=f"{len(key)} characters: FileNotFoundError") as caught:
        google_token({"GOOGLE_APPLICATION_CREDENTIALS": key})
    assert key not in str(caught.value)
