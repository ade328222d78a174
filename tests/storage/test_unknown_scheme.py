import pytest

from podferry.contract.errors import UnknownScheme
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store


@pytest.mark.parametrize(
    ("scheme", "meant"), [("s4", "s3"), ("gcp", "gcs"), ("fiel", "file"), ("htps", "https")]
)
def test_a_mistyped_scheme_gets_a_suggestion(scheme, meant):
    with pytest.raises(UnknownScheme, match=f"Did you mean '{meant}'"):
        open_store(parse_uri(f"{scheme}://b/x"))


def test_an_unknown_scheme_gets_the_list_of_known_ones():
    with pytest.raises(UnknownScheme, match=r"Known schemes: .*s3"):
        open_store(parse_uri("quux-quux-quux://b/x"))


@pytest.mark.parametrize(
    ("scheme", "hint"),
    [
        ("wasbs", "'abfss'"),
        ("cos", "s3://BUCKET/PATH"),
        ("obs", "endpoint of the service"),
        ("scp", "'sftp'"),
    ],
)
def test_other_programs_names_of_a_service_are_known(scheme, hint):
    with pytest.raises(UnknownScheme, match=hint):
        open_store(parse_uri(f"{scheme}://b/x"))


@pytest.mark.parametrize(
    ("scheme", "hint"), [("nfs", "pvc://CLAIM/PATH"), ("juicefs", "pvc://CLAIM/PATH"), ("cifs", "smb://")]
)
def test_what_a_volume_serves_is_named(scheme, hint):
    with pytest.raises(UnknownScheme, match=hint):
        open_store(parse_uri(f"{scheme}://host/path"))
