"""A profile without keys is named, with what it has instead; the output of its command never is."""

import pytest
from aiohttp import web

from podferry.contract.errors import CredentialsMissing
from podferry.contract.uri import Uri
from podferry.storage.credentials import profile_error as module
from podferry.storage.credentials.profile_error import no_credentials, process_failure, profile_error
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits

LOCATION = StoreLocation(Uri("s3", "b"), "http://127.0.0.1:1")


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """Writes the profile `one`."""

    def write(*lines):
        (tmp_path / "config").write_text("\n".join(["[profile one]", *lines, ""]))

    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    return write


@pytest.mark.parametrize(
    "line",
    [
        "sso_session = corp",
        "sso_start_url = https://corp.example/start",
        "login_session = arn:aws:iam::1:user/x",
        "source_profile = base",
        "credential_source = Environment",
        "web_identity_token_file = /token",
    ],
)
def test_what_is_not_supported_is_named_with_the_profile(profile, line):
    profile(line, "role_arn = arn:aws:iam::1:role/x")
    message = str(profile_error(LOCATION, {"AWS_PROFILE": "one"}))
    start = f"the profile 'one' has no keys for s3://b/ ({line}, which podferry does not support; endpoint"
    assert message.startswith(start)
    assert 'eval "$(aws configure export-credentials --profile one --format env)"' in message


@pytest.mark.parametrize(
    ("command", "failure"),
    [
        ("sh -c 'echo hunter2; echo hunter3 >&2; exit 3' hunter4", "sh: exit code 3"),
        ("/nonexistent/vault --token hunter2", "/nonexistent/vault: no such command"),
        ("echo hunter2", "echo: its output is no JSON with"),
        (
            'echo {"AccessKeyId": "hunter2"}',
            "echo: its output is no JSON with",
        ),
    ],
)
def test_a_command_that_fails_is_named_without_its_output(profile, command, failure):
    profile(f"credential_process = {command}")
    message = str(profile_error(LOCATION, {"AWS_PROFILE": "one"}))
    assert f"(its credential_process fails: {failure}" in message
    assert "hunter" not in message


def test_a_command_that_works_is_not_supported_either(profile):
    profile("""credential_process = echo '{"AccessKeyId": "hunter2", "SecretAccessKey": "hunter3"}'""")
    message = str(profile_error(LOCATION, {"AWS_PROFILE": "one"}))
    assert "(credential_process, which podferry does not support; endpoint" in message
    assert "hunter" not in message


def test_a_command_that_does_not_end_is_stopped(monkeypatch):
    monkeypatch.setattr(module, "PROCESS_SECONDS", 0.1)
    assert process_failure("sleep 600; true") == "no end within 0.1 s"


def test_other_stores_and_profiles_say_what_they_said(profile):
    profile("region = here")
    assert profile_error(LOCATION, {"AWS_PROFILE": "one"}) is None
    found = no_credentials(LOCATION, {"AWS_PROFILE": "one"}, "nothing there")
    assert "there are no credentials for s3://b/ (nothing there" in str(found)
    profile("sso_session = corp")
    assert profile_error(StoreLocation(Uri("bos", "b")), {"AWS_PROFILE": "one"}) is None
    assert profile_error(LOCATION, {}) is None


@pytest.mark.parametrize(
    "metadata", [{"AWS_EC2_METADATA_DISABLED": "true"}, {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}]
)
async def test_a_store_names_the_profile(profile, metadata):
    profile("sso_session = corp")
    config = StoreConfig("http://127.0.0.1:1", credentials={"AWS_PROFILE": "one", **metadata})
    with pytest.raises(
        CredentialsMissing, match=r"profile 'one' has no keys for s3://b/ \(sso_session = corp"
    ):
        await open_store(Uri("s3", "b"), config, Limits(retries=0)).stat("a")


async def test_a_metadata_service_that_refuses_names_the_profile(profile, answering):
    async def refuse(request):
        return web.Response(status=403)

    profile("source_profile = base")
    held = {"AWS_PROFILE": "one", "AWS_METADATA_ENDPOINT": await answering(refuse)}
    store = open_store(
        Uri("s3", "b"), StoreConfig("http://store.example", credentials=held), Limits(retries=0)
    )
    with pytest.raises(
        CredentialsMissing, match=r"profile 'one' has no keys for s3://b/ \(source_profile = base"
    ):
        await store.stat("a")
    await store.close()
