"""CA certificates as PEM."""

import pytest

from podferry.contract.ca_certificates import parse_certificates
from podferry.contract.errors import InvalidSpec
from tests.support.private_ca import PrivateCa


def test_the_text_between_certificates_is_left_out():
    one, other = PrivateCa().pem, PrivateCa().pem
    found = parse_certificates(f"# one: ü\n{one}\nnot a -----BEGIN thing\n{other}")
    assert found == [one.strip(), other.strip()]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "there is no certificate (0 characters)"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "there is no certificate"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "a certificate is not valid (1 blocks",
        ),
        ("-----BEGIN CERTIFICATE-----\nü\n-----END CERTIFICATE-----", "there is no certificate"),
    ],
)
def test_what_is_wrong(text, what):
    with pytest.raises(InvalidSpec) as caught:
        parse_certificates(text)
    assert str(caught.value).startswith(what)
    assert "PEM" in str(caught.value)
