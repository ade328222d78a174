import pytest

from podferry.contract.errors import CredentialsMissing
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.obstore.store import ObstoreStore
from podferry.storage.store import StoreConfig

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
