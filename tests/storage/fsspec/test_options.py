from podferry.contract.uri import parse_uri
from podferry.storage.fsspec.options import options_for
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS


def test_any_option_of_a_file_system_can_be_set():
    config = StoreConfig(credentials={"FSSPEC_SFTP_USERNAME": "u", "FSSPEC_SFTP_PORT": "2222", "OTHER": "x"})
    settings = options_for(parse_uri("sftp://host/x"), config, LIMITS)
    assert (settings.options["username"], settings.options["port"]) == ("u", 2222)
    assert settings.location.credentials == ("FSSPEC_SFTP_PORT", "FSSPEC_SFTP_USERNAME")


def test_options_do_not_print_values():
    config = StoreConfig(credentials={"AWS_ACCESS_KEY_ID": "kkkk", "AWS_SECRET_ACCESS_KEY": "ssss"})
    printed = repr(options_for(parse_uri("s3://b?engine=fsspec"), config, LIMITS))
    assert "kkkk" not in printed
    assert "ssss" not in printed
