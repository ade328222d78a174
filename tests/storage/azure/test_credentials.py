import time

import pytest

from podferry.contract.errors import InvalidSpec, NotFound, Unavailable
from podferry.storage.azure.credentials import (
    AzureCredential,
    AzureCredentialsProvider,
    AzureSource,
    azure_source,
    decoded_key,
    with_connection_string,
)

KEY = {"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}
SAS = {"AZURE_STORAGE_SAS_TOKEN": "sv=1"}
POD = {"AZURE_CLIENT_ID": "i", "AZURE_TENANT_ID": "t", "AZURE_FEDERATED_TOKEN_FILE": "/f"}
PRINCIPAL = {"AZURE_CLIENT_ID": "i", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_SECRET": "s"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, AzureSource.NONE),
        ({"AZURE_TENANT_ID": "t"}, AzureSource.NONE),
        ({"AZURE_STORAGE_TOKEN": "t"}, AzureSource.TOKEN),
        (KEY, AzureSource.KEY),
        (SAS, AzureSource.SAS),
        (PRINCIPAL, AzureSource.CLIENT_SECRET),
        (POD, AzureSource.WORKLOAD_IDENTITY),
        ({**POD, **KEY}, AzureSource.KEY),
        ({"AZURE_CLIENT_ID": "i"}, AzureSource.MANAGED_IDENTITY),
        ({"AZURE_USE_MANAGED_IDENTITY": "true"}, AzureSource.MANAGED_IDENTITY),
        ({"AZURE_MSI_ENDPOINT": "http://127.0.0.1/x"}, AzureSource.MANAGED_IDENTITY),
        ({**KEY, "AZURE_SKIP_SIGNATURE": "true"}, AzureSource.ANONYMOUS),
    ],
)
def test_where_credentials_come_from(variables, expected):
    assert azure_source(variables) is expected


def test_variables_win_over_a_connection_string():
    text = "AccountName=a;AccountKey=a2V5;BlobEndpoint=http://h/a;EndpointSuffix=x"
    found = with_connection_string(
        {"AZURE_STORAGE_CONNECTION_STRING": text, "AZURE_STORAGE_ACCOUNT_NAME": "b"}
    )
    assert found["AZURE_STORAGE_ACCOUNT_NAME"] == "b"
    assert (found["AZURE_STORAGE_ACCOUNT_KEY"], found["AZURE_STORAGE_ENDPOINT"]) == ("a2V5", "http://h/a")


# obstore refuses the second one: its last character has bits of no byte.
@pytest.mark.parametrize("key", ["not base64!", "a" * 86 + "=="])
def test_a_key_that_is_none_is_refused_without_its_text(key):
    with pytest.raises(InvalidSpec, match="no key of a storage account") as caught:
        decoded_key(key)
    assert key not in str(caught.value)


def never(variables):
    raise AssertionError


def test_keys_are_read_again():
    held = dict(KEY)
    provider = AzureCredentialsProvider(KEY, lambda: held, never)
    assert provider.load() == AzureCredential(AzureSource.KEY, "a2V5")
    held["AZURE_STORAGE_ACCOUNT_KEY"] = "bmV3"
    assert provider.load().value == "bmV3"
    held.clear()
    assert provider.load().value == "a2V5"
    assert not provider.lasting
    assert AzureCredentialsProvider(KEY, None, never).lasting

    def fail():
        raise NotFound.of("the Secret is being recreated")

    assert AzureCredentialsProvider(SAS, fail, never).load().value == "sv=1"
    assert AzureCredentialsProvider({"AZURE_SKIP_SIGNATURE": "1"}, None, never).load() is None


def test_tokens_are_requested_again_before_they_expire():
    left, asked = [3600.0, 100.0, 100.0], []

    def request(variables):
        asked.append(variables)
        if not left:
            raise Unavailable.of("down")
        return AzureCredential(AzureSource.TOKEN, str(len(asked)), time.time() + left.pop(0))

    provider = AzureCredentialsProvider(POD, None, request)
    assert [provider.load().value for _ in range(3)] == ["1", "1", "1"]
    provider._token = provider._token._replace(expires=time.time() + 10)
    assert [provider.load().value for _ in range(2)] == ["2", "3"]
    assert provider.load().value == "3"  # the service is down, and the last one is valid
    provider._token = provider._token._replace(expires=time.time() - 1)
    with pytest.raises(Unavailable):
        provider.load()
    assert asked[0] == POD
