import json

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.fsspec.engine import SECRET_KEYS
from podferry.storage.fsspec.google_credentials import google_token
from podferry.storage.fsspec.options import options_for
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS

URI = "https://oauth2.googleapis.com/token"
ACCOUNT = {"type": "service_account", "client_email": "a@b", "private_key": "hunter2", "token_uri": URI}
USER = {"type": "authorized_user", "client_id": "i", "client_secret": "hunter2", "refresh_token": "hunter3"}
FEDERATED = {
    "type": "external_account",
    "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    "token_url": "https://sts.googleapis.com/v1/token",
    "credential_source": {"file": "/var/run/token"},
}


@pytest.fixture(scope="module")
def account():
    """With a key that can be read."""
    key = rsa.generate_private_key(65537, 2048)
    encoded = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {**ACCOUNT, "private_key": encoded.decode()}


def test_no_credentials_are_googles_default_search():
    assert google_token({}) == "google_default"
    assert google_token({"GOOGLE_SKIP_SIGNATURE": "true", "key.json": "{}"}) == "anon"


@pytest.mark.parametrize("name", ["GOOGLE_APPLICATION_CREDENTIALS", *SECRET_KEYS])
def test_the_json_of_a_secrets_key(name, account):
    held = {"other": "x", name: json.dumps(account, indent=2)}
    assert google_token(held) == account
    options = options_for(Uri("gs", "b"), StoreConfig(credentials=held), LIMITS)
    assert options.options["token"] == account
    assert options.location.credentials == (name,)
    assert account["private_key"] not in repr(options)


def test_a_file_of_the_environment(tmp_path, account):
    file = tmp_path / "key.json"
    file.write_text(json.dumps(account))
    assert google_token({"GOOGLE_APPLICATION_CREDENTIALS": str(file)}) == account
    with pytest.raises(CredentialsMissing, match=r"none\.json: FileNotFoundError"):
        google_token({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "none.json")})


@pytest.mark.parametrize("text", ['{"private": "hunter2"', "hunter2", "[1]"])
def test_what_is_no_json_is_refused_and_not_printed(text):
    with pytest.raises(InvalidSpec) as caught:
        google_token({"key.json": text})
    assert "hunter2" not in str(caught.value)


def test_json_without_fields_is_named_as_that():
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "key.json"):
        with pytest.raises(InvalidSpec, match=f"{name} is JSON, but not an object.*it is a list") as caught:
            google_token({name: '["hunter2"]'})
        assert "hunter2" not in str(caught.value)


def test_a_file_is_named_with_what_is_wrong_in_it(tmp_path):
    (tmp_path / "key.json").write_text(json.dumps({**USER, "refresh_token": ""}))
    with pytest.raises(InvalidSpec, match=r"CREDENTIALS \(.*/key\.json\) is incomplete .*refresh_token\)"):
        google_token({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "key.json")})
    (tmp_path / "key.json").write_text("hunter2")
    with pytest.raises(InvalidSpec, match=r"CREDENTIALS \(.*/key\.json\) is not JSON"):
        google_token({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "key.json")})


def test_the_file_of_gcloud_is_checked_before_the_default_search(tmp_path, monkeypatch):
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    file = tmp_path / "application_default_credentials.json"
    for whole in (json.dumps(USER), '{"type": "impersonated_service_account"}'):
        file.write_text(whole)
        assert google_token({}) == "google_default"
    for text, words in (("[1]", "not an object"), ('{"type": "authorized_user"}', "is incomplete")):
        file.write_text(text)
        with pytest.raises(InvalidSpec, match=f"{file} .*{words}|{file} {words}"):
            google_token({})
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "of the machine")
    assert google_token({"AWS_ACCESS_KEY_ID": "of a Secret"}) == "google_default"


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
