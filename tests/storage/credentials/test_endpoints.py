import pytest
from aiohttp import web

from podferry.contract.errors import AccessDenied, CredentialsMissing, InvalidSpec, PermanentError
from podferry.contract.uri import parse_uri
from podferry.storage.credentials.sources import config_from_directory, config_from_environment
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.scripted_ftp import scripted_ftp

S3 = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
OF_ALL = {
    **S3,
    "BOS_ACCESS_KEY_ID": "k",
    "BOS_SECRET_ACCESS_KEY": "s",
    "OSS_REGION": "cn-hangzhou",
    "OSS_ACCESS_KEY_ID": "k",
    "OSS_ACCESS_KEY_SECRET": "s",
    "GOOGLE_SKIP_SIGNATURE": "true",
    "AZURE_STORAGE_ACCOUNT_NAME": "a",
    "AZURE_STORAGE_ACCOUNT_KEY": "YWJj",
}
SCHEMES = ["s3", "bos", "az", "oss", "gs", "hf"]
ENDPOINTS = {
    "AWS_ENDPOINT_URL_S3": "s3",
    "AWS_ENDPOINT_URL": "s3",
    "BOS_ENDPOINT": "bos",
    "AZURE_STORAGE_ENDPOINT": "az",
    "AZURE_ENDPOINT": "az",
    "OSS_ENDPOINT": "oss",
    "STORAGE_EMULATOR_HOST": "gs",
    "HF_ENDPOINT": "hf",
}


@pytest.mark.parametrize(
    "endpoint",
    ["127.0.0.1:9000", "ftp://host", "minio", "http://bad host:9", "http://a:99999", "https://[::1].lab"],
)
def test_an_endpoint_is_a_url(endpoint):
    with pytest.raises(InvalidSpec, match="an endpoint must be a URL"):
        open_store(parse_uri("s3://b/x"), StoreConfig(endpoint=endpoint, credentials=S3))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_endpoint_has_no_password_which_messages_would_show(scheme):
    config = StoreConfig(endpoint="https://me:pa55@store.example", credentials=OF_ALL)
    with pytest.raises(InvalidSpec, match="neither a user nor a password") as caught:
        open_store(parse_uri(f"{scheme}://datasets/digits/x"), config)
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "odd", ["http://h:1/ ", " http://h:1", "http://h:1\n", "http://h:1/a b", "http://h\t/", "http://h:1\xa0"]
)
def test_an_endpoint_has_no_spaces_that_a_client_would_send(scheme, odd):
    with pytest.raises(InvalidSpec, match="an endpoint must "):
        open_store(parse_uri(f"{scheme}://datasets/digits/x"), StoreConfig(endpoint=odd, credentials=OF_ALL))


@pytest.mark.parametrize("name", ENDPOINTS)
@pytest.mark.parametrize("text", ["http://h:1 ", "http://h:1 \n", " http://h:1\t"])
async def test_spaces_around_an_endpoint_are_dropped(name, text, tmp_path):
    held = {**OF_ALL, name: text}
    for key, value in held.items():
        (tmp_path / key).write_text(value)
    for config in (config_from_environment(held), config_from_directory(tmp_path, {})):
        assert config.credentials[name] == "http://h:1"
        await open_store(parse_uri(f"{ENDPOINTS[name]}://datasets/digits/x"), config).close()


@pytest.mark.parametrize("uri", ["s3://b/x", "az://c/x", "oss://b/x", "sftp://h/x", "smb://h/s/x"])
def test_without_credentials_the_unknown_keys_of_a_secret_are_named(uri):
    held = {
        "access_key": "pa55",
        "pass": "pa55",
        "ca": "",
        "https_proxy": "",
        "OSS_REGION": "cn-hangzhou",
        "AWS_EC2_METADATA_DISABLED": "1",
    }
    held["AZURE_STORAGE_ACCOUNT_NAME"] = "lake"
    config = StoreConfig(credentials=held, reload_credentials=lambda: held)
    with pytest.raises(CredentialsMissing, match=r"unknown keys of the Secret: .*access_key, pass") as caught:
        open_store(parse_uri(uri), config)
    assert "pa55" not in str(caught.value)
    assert "ca," not in str(caught.value)
    assert "https_proxy" not in str(caught.value)
    with pytest.raises(CredentialsMissing) as caught:
        open_store(parse_uri(uri), StoreConfig(credentials=held))
    assert "unknown keys" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "webdav", "hf"])
async def test_a_server_that_asks_for_a_login_shows_keys_that_mean_nothing(answering, scheme):
    async def answer(request):
        return web.Response(status=401)

    held, endpoint = {"user": "pa55", "pass": "pa55"}, await answering(answer)
    uri = f"{scheme}://org/name" if scheme == "hf" else endpoint.replace("http", scheme)
    config = StoreConfig(endpoint if scheme == "hf" else None, None, held, lambda: held)
    store = open_store(parse_uri(f"{uri}/digits"), config)
    with pytest.raises(
        PermanentError, match="no credentials were read; unknown keys of the Secret: pass, user"
    ):
        await store.children()
    await store.close()


async def test_an_ftp_server_that_refuses_anonymous_users_shows_keys_that_mean_nothing():
    async def refuse(session, _):
        await session.say("530 Login incorrect.")

    held = {"user": "pa55", "pass": "pa55"}
    async with scripted_ftp({"PASS": refuse, "USER": refuse}) as server:
        store = open_store(
            parse_uri(f"ftp://{server.address}/d"), StoreConfig(None, None, held, lambda: held)
        )
        with pytest.raises(
            AccessDenied, match="no credentials were read; unknown keys of the Secret: pass, user"
        ):
            await store.children()
        await store.close()


@pytest.mark.parametrize(
    ("uri", "credentials"),
    [
        ("s3://b/x", {**S3, "AWS_REGION": "elsewhere.example/"}),
        ("bos://b/x", {"BOS_ACCESS_KEY_ID": "k", "BOS_SECRET_ACCESS_KEY": "s", "BOS_REGION": "a.example#"}),
        ("az://c/x", {"AZURE_STORAGE_ACCOUNT_NAME": "a.example/", "AZURE_STORAGE_ACCOUNT_KEY": "YWJj"}),
        ("az://c/x", {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a.example/;AccountKey=YWJj"}),
    ],
)
def test_a_secret_names_no_other_host_by_a_part_of_the_vendors(uri, credentials):
    """The policy's endpoints cover addresses in Secrets, and these would be one."""
    with pytest.raises(InvalidSpec, match="cannot be part of a host's name"):
        open_store(parse_uri(uri), StoreConfig(credentials=credentials))
