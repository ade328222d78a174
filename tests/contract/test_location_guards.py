import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.location_guards import (
    UNGUARDED,
    LocationGuards,
    decode_guards,
    encode_guards,
    is_metadata_service,
    source_problem,
)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254",
        "http://169.254.169.254/latest/meta-data/iam",
        "169.254.169.254:80",
        "http://169.254.170.2/v2/credentials",
        "http://[fd00:ec2::254]/latest",
        "http://[::ffff:169.254.169.254]/",
        "http://[fe80::1%25eth0]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://instance-data.eu-west-1.compute.internal/latest",
        "http://instance-data.ec2.internal",
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://METADATA.google.internal./",
        "http://metadata/",
        "http://100.100.100.200/latest",
        "http://168.63.129.16/machine",
        # Other notations of the same address, which clients resolve.
        "http://2852039166/",
        "http://0xA9FEA9FE/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://user:password@169.254.169.254/",
        "http://%31%36%39.254.169.254/",
        "http://\uff11\uff16\uff19.254.169.254/",
        "http://169\u3002254\u3002169\u3002254/",
    ],
)
def test_metadata_services(url: str) -> None:
    assert is_metadata_service(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://s3.eu-central-1.amazonaws.com",
        "http://10.244.0.1:9000",
        "http://[2001:db8::1]:9000",
        "http://[64:ff9b::a0a:1]:9000",
        "http://instance-data.example.com",
        "http://metadata.example.com",
        "http://169.253.1.1",
        "http://169.254.169.254.example.com",
        "http://[broken",
        "",
    ],
)
def test_other_services(url: str) -> None:
    assert not is_metadata_service(url)


def test_guards_pass_through_a_variable() -> None:
    guards = LocationGuards((("https://a", "https://b*"), ()), (("s3://datasets/",),))
    assert decode_guards(encode_guards(guards)) == guards
    assert decode_guards("") == UNGUARDED
    with pytest.raises(InvalidSpec, match="PODFERRY_GUARDS is invalid"):
        decode_guards("[]")


def test_sources() -> None:
    guards = (("s3://datasets/*",), ("s3://*/team/",))
    assert source_problem("a manifest", "s3://datasets/team/x", guards) is None
    assert source_problem("a manifest", "s3://private", ()) is None
    assert str(source_problem("a manifest", "s3://datasets/other", guards)) == (
        "a manifest: the policy does not allow this location (s3://datasets/other). "
        "Use one of the allowed sources: s3://*/team/."
    )
    assert "credentials" in str(source_problem("a manifest", "http://169.254.169.254/x", ()))
