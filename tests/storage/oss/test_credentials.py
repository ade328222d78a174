import pytest

from podferry.contract.errors import CredentialsMissing
from podferry.contract.uri import parse_uri
from podferry.storage.oss.credentials import OssCredentials
from podferry.storage.oss.endpoint import oss_access
from podferry.storage.oss.keys import OssKeys
from podferry.storage.store import StoreConfig

KEYS = {"akId": "k", "akSecret": "s"}


def credentials(reload=None, **held):
    config = StoreConfig(region="cn-hangzhou", credentials=held or KEYS, reload_credentials=reload)
    return OssCredentials(oss_access(parse_uri("oss://data/x"), config))


async def test_keys_are_there_after_prepare():
    found = credentials()
    assert found.current is None
    await found.prepare()
    assert found.current == OssKeys("k", "s")


async def test_a_secret_that_changes_is_read_again(monkeypatch):
    monkeypatch.setattr("podferry.storage.credentials.refresh.REFRESH_SECONDS", 0)
    held = dict(KEYS)
    found = credentials(lambda: held)
    await found.prepare()
    held["akId"] = "new"
    await found.prepare()
    assert found.current == OssKeys("new", "s")


async def test_anonymous_access_has_no_keys():
    found = credentials(OSS_SKIP_SIGNATURE="true")
    await found.prepare()
    assert found.anonymous
    assert found.current is None


async def test_what_cannot_be_in_a_header_is_refused():
    with pytest.raises(CredentialsMissing, match="not valid in a header") as caught:
        await credentials(akId="kä", akSecret="s").prepare()
    assert "kä" not in str(caught.value)
