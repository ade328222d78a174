import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.azure.place import AzurePlace, azure_place, web_address_problem
from podferry.storage.factory import open_store

RIGHT = "abfss://data@lake.dfs.core.windows.net/run/1"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("az://data/run", AzurePlace("data")),
        ("abfss://data/run", AzurePlace("data")),
        (RIGHT, AzurePlace("data", "lake", "https://lake.blob.core.windows.net")),
        (
            "abfs://data@lake.dfs.core.chinacloudapi.cn/run",
            AzurePlace("data", "lake", "https://lake.blob.core.chinacloudapi.cn"),
        ),
        (
            "az://data@lake.blob.core.windows.net",
            AzurePlace("data", "lake", "https://lake.blob.core.windows.net"),
        ),
    ],
)
def test_container_and_account(uri, expected):
    assert azure_place(parse_uri(uri)) == expected


@pytest.mark.parametrize(
    ("uri", "right"),
    [
        ("az://lake.blob.core.windows.net/data/run/1", RIGHT),
        ("abfss://lake.dfs.core.windows.net/data/run/1", RIGHT),
        ("abfss://data@example.com/run", "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"),
        ("abfss://a@data@lake.dfs.core.windows.net/run", "abfss://"),
        ("az://data.example.com/run", "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"),
        ("abfss://@lake.dfs.core.windows.net/run", "abfss://"),
        ("abfss://share@lake.file.core.windows.net/run", "smb://lake.file.core.windows.net/SHARE/PATH"),
    ],
)
def test_other_spellings_are_refused_with_the_right_one(uri, right):
    with pytest.raises(InvalidSpec) as caught:
        azure_place(parse_uri(uri))
    assert f"Write {right}" in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "right"),
    [
        ("https://lake.blob.core.windows.net/data/run/1", RIGHT),
        ("https://lake.dfs.core.windows.net/data/run/1", RIGHT),
        ("https://lake.file.core.windows.net/share/x", "smb://lake.file.core.windows.net/SHARE/PATH"),
    ],
)
def test_web_addresses_of_accounts_are_refused_with_the_right_spelling(uri, right):
    with pytest.raises(InvalidSpec) as caught:
        open_store(parse_uri(uri))
    assert f"Write {right}" in str(caught.value)


def test_other_web_servers_are_none_of_azures():
    assert web_address_problem(parse_uri("https://blob.example.com/x")) is None
    assert web_address_problem(parse_uri("az://lake.blob.core.windows.net/x")) is None
