import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.fsspec.options import options_for
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS


def test_any_option_of_a_file_system_can_be_set():
    config = StoreConfig(credentials={"FSSPEC_BOX_USERNAME": "u", "FSSPEC_BOX_PORT": "2222", "OTHER": "x"})
    settings = options_for(parse_uri("box://host/x"), config, LIMITS)
    assert (settings.options["username"], settings.options["port"]) == ("u", 2222)
    assert settings.location.credentials == ("FSSPEC_BOX_PORT", "FSSPEC_BOX_USERNAME")


def test_options_do_not_print_values():
    config = StoreConfig(credentials={"AWS_ACCESS_KEY_ID": "kkkk", "AWS_SECRET_ACCESS_KEY": "ssss"})
    printed = repr(options_for(parse_uri("s3://b?engine=fsspec"), config, LIMITS))
    assert "kkkk" not in printed
    assert "ssss" not in printed


def test_the_account_of_azure_names_no_other_host():
    credentials = {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=elsewhere.example/;AccountKey=YWJj"}
    with pytest.raises(InvalidSpec, match="cannot be part of a host's name"):
        options_for(parse_uri("az://c/x"), StoreConfig(credentials=credentials), LIMITS)
