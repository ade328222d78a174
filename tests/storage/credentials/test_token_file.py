from pathlib import Path

import pytest
from aiohttp import web

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.credentials.token_file import StrippedTokenFile, stripped_token_file
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

CREDENTIALS = {
    "AccessKeyId": "key-of-the-role",
    "SecretAccessKey": "s",
    "Token": "t",
    "Expiration": "2000-01-01T00:00:00Z",  # so that they are asked for again
}
OBJECT = {"Last-Modified": "Sat, 21 Nov 2026 17:00:00 GMT", "ETag": '"a"'}


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", " \n\n"])
async def test_tokens_of_the_container(answering, quick, tmp_path, ending):
    """obstore sends what the file has now, whatever it ends with."""
    file, sent = tmp_path / "token", []

    async def give(request):
        sent.append(request.headers["Authorization"])
        return web.json_response(CREDENTIALS)

    async def read(_):
        return web.Response(text="1", headers=OBJECT)

    credentials = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{await answering(give)}/creds",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(file),
    }
    file.write_text("a-long-token" + ending)
    config = StoreConfig(endpoint=await answering(read), credentials=credentials)
    store = open_store(parse_uri("s3://bucket/x"), config, quick)
    await store.read("a")
    file.write_text("another" + ending)
    await store.read("a")
    assert (sent[0], sent[-1]) == ("a-long-token", "another")


def test_a_file_without_a_line_break_is_used_itself(tmp_path):
    file = tmp_path / "token"
    assert stripped_token_file(str(file)) is None
    file.write_text("token")
    assert stripped_token_file(str(file)) is None


@pytest.mark.parametrize("text", ["to\nken\n", "to\x00ken\n", "to\nken"])
def test_a_token_has_one_line(tmp_path, text):
    (tmp_path / "token").write_text(text)
    with pytest.raises(InvalidSpec, match="has several lines"):
        stripped_token_file(str(tmp_path / "token"))


def test_the_last_token_remains_when_the_file_is_gone(tmp_path):
    file = tmp_path / "token"
    file.write_text("token\n")
    copy = StrippedTokenFile(file)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        copy.refresh()
    assert Path(copy.path).read_text() == "token"
