import pytest

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.azure.endpoint import azure_access
from podferry.storage.factory import open_store
from podferry.storage.obstore.store import ObstoreStore
from podferry.storage.store import StoreConfig

ACCOUNT_OF_URI = {"AZURE_STORAGE_ACCOUNT_NAME": "lake"}
AZURE = {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_STORAGE_ACCOUNT_KEY": "c2VjcmV0"}


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({}, "no storage account is configured"),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "a"}, "there are no credentials"),
        ({"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a"}, "there are no credentials"),
    ],
)
def test_azure_says_what_is_missing(held, expected):
    with pytest.raises(CredentialsMissing, match=expected):
        open_store(parse_uri("az://c/x"), StoreConfig(credentials=held))


LAKE = "abfss://data@lake.dfs.core.windows.net/run"


def test_the_account_of_a_uri():
    access = azure_access(parse_uri(LAKE), StoreConfig(credentials={"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}))
    assert (access.container, access.account) == ("data", "lake")
    assert access.container_url == "https://lake.blob.core.windows.net/data"
    emulator = StoreConfig("http://127.0.0.1:10000/devstoreaccount1", credentials=AZURE | ACCOUNT_OF_URI)
    assert (
        azure_access(parse_uri(LAKE), emulator).container_url
        == "http://127.0.0.1:10000/devstoreaccount1/data"
    )


def test_keys_of_another_account_are_not_sent():
    with pytest.raises(InvalidSpec, match="in the storage account lake, and the credentials are of account"):
        azure_access(parse_uri(LAKE), StoreConfig(credentials=AZURE))
    identity = {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_USE_MANAGED_IDENTITY": "true"}
    assert azure_access(parse_uri(LAKE), StoreConfig(credentials=identity)).account == "lake"


@pytest.mark.parametrize(
    "held",
    [
        AZURE,
        {
            "AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;AccountKey=c2VjcmV0;BlobEndpoint=http://127.0.0.1:1/a"
        },
        {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=2"},
        {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_SKIP_SIGNATURE": "true"},
    ],
)
def test_azure_accepts_each_form_of_credentials(held):
    assert type(open_store(parse_uri("az://c/x"), StoreConfig(credentials=held))) is ObstoreStore
