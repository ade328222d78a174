import pytest

from podferry.contract.location_globs import allows


@pytest.mark.parametrize(
    ("pattern", "place", "expected"),
    [
        ("*", "s3://any/../thing", True),
        ("s3://data/*", "s3://data/a/b", True),
        ("s3://data/*", "s3://data-secret/a", False),
        ("s3://data/", "s3://data", True),
        ("s3://data/", "s3://data/a/b", True),
        ("s3://data/", "s3://data-secret/a", False),
        ("s3://data/team", "s3://data/team/a", False),
        ("s3://*/team/", "s3://data/team/a/b", True),
        ("s3://*/team/", "s3://data/teams/a", False),
        ("s3://data/team-?/*", "s3://data/team-7/x", True),
        ("file:///mnt/*", "file:///mnt/../etc", False),
        ("s3://DATA/*", "s3://data/x", False),
        ("abfss://data/*", "abfss://data@other.dfs.core.windows.net/x", False),
        ("abfss://data@lake.dfs.core.windows.net/", "abfss://data@other.dfs.core.windows.net/x", False),
        ("abfss://data@lake.dfs.core.windows.net/", "abfss://data@lake.dfs.core.windows.net/x", True),
        ("bos://data/*", "bos://data.bj.bcebos.com/x", False),
    ],
)
def test_allows(pattern: str, place: str, expected: bool) -> None:
    assert allows([pattern], place) is expected


@pytest.mark.parametrize(
    ("pattern", "place", "expected"),
    [
        ("{}://nas*", "{}://nas@evil.example/x", False),
        ("{}://nas*/data/*", "{}://nas@evil.example/data/x", False),
        ("{}://nas-?:22/*", "{}://nas-1@evil:22/x", False),
        ("{}://nas?evil/*", "{}://nas@evil/x", False),
        ("{}://bob@nas*", "{}://bob@nas@evil/x", False),
        ("{}://bob@nas/*", "{}://eve@nas/x", False),
        ("{}://bob@nas/*", "{}://nas/x", False),
        ("{}://nas*", "{}://nas.example/x", True),
        ("{}://nas/", "{}://bob@nas/x", False),
        ("{}://*@nas/", "{}://bob@evil/@nas/x", False),
        ("{}://*", "{}://bob@nas/x", True),
        ("{}://*.lab/", "{}://bob@nas.lab/x", True),
        ("{}://*@nas/", "{}://LAB;bob@nas/x@y", True),
        ("{}://*@nas/", "{}://bob@nas/x", True),
        ("{}://bob@nas/*", "{}://bob@nas/x", True),
        ("{}://nas/*@*", "{}://nas/x@y", True),
    ],
)
@pytest.mark.parametrize("scheme", ["sftp", "smb", "ftps", "https", "abfss"])
def test_a_user_does_not_lead_elsewhere(scheme: str, pattern: str, place: str, expected: bool) -> None:
    assert allows([pattern.format(scheme)], place.format(scheme)) is expected


def test_no_pattern_allows_nothing() -> None:
    assert not allows([], "s3://data")


@pytest.mark.parametrize(
    ("pattern", "place", "expected"),
    [
        ("https://*.lab.example", "https://elsewhere.example/x.lab.example", False),
        ("https://*.lab.example/*", "https://elsewhere.example/.lab.example/x", False),
        ("https://*.lab.example/*", "https://web.lab.example/digits", True),
        ("sftp://*.lab/", "sftp://elsewhere/x.lab/y", False),
        ("s3://*/team/", "s3://other/private/team/x", False),
        ("s3://data-*/team/", "s3://data-1/team/x", True),
        ("s3://data*", "s3://data-1/any/thing", True),
        ("https://store-?", "https://store-1/thing", False),
        ("*://data/*", "gs://data/x", True),
        ("*://data/*", "s3://x/://data/x", False),
        ("http*://web/", "https://web/x", True),
        ("s3://data/*/team/", "s3://data/a/b/team/x", True),
    ],
)
def test_a_wildcard_ends_where_its_part_does(pattern: str, place: str, expected: bool) -> None:
    assert allows([pattern], place) is expected


@pytest.mark.parametrize(
    "place",
    [
        "https://[::ffff:6.6.6.6].lab.example",
        "https://[2001:db8::1].lab.example/digits",
        "https://x.lab.example[2001:db8::1].lab.example",
        "https://a][b.lab.example",
    ],
)
def test_an_address_in_a_part_of_the_host_is_not_the_domain_behind_it(place: str) -> None:
    """Python connects to the address."""
    assert not allows(["https://*.lab.example/", "https://*.lab.example"], place)


@pytest.mark.parametrize(
    ("pattern", "place", "expected"),
    [
        ("sftp://[fd00::1]/data/", "sftp://[fd00::1]/data/x", True),
        ("sftp://*@[fd00::1]:22/data/", "sftp://bob@[fd00::1]:22/data/x", True),
        ("sftp://[fd00::1]/data/", "sftp://f/data/x", False),
        ("https://[::1]:9000", "https://[::1]:9000", True),
        ("https://nas-[12]/", "https://nas-2/x", True),
    ],
)
def test_addresses_of_ipv6_are_no_sets_of_characters(pattern: str, place: str, expected: bool) -> None:
    assert allows([pattern], place) is expected


@pytest.mark.parametrize(
    "place", ["ftp://nas/ok/..\\private", "smb://nas/ok/a\\..\\..\\x", "sftp://nas/ok\\.."]
)
def test_servers_on_windows_take_backslashes(place: str) -> None:
    """For them, this is the directory above."""
    assert not allows([f"{place.partition(':')[0]}://nas/ok*"], place)
    assert allows(["*"], place)


@pytest.mark.parametrize(
    ("pattern", "place", "expected"),
    [
        ("hdfs://nn1.example:8020", "nn1.example:8020", True),
        ("hdfs://nn1.example:8020", "elsewhere:8020", False),
        ("https://*.example", "elsewhere:80/x.example", False),
        ("s3*", "s3://data/x", False),
        ("*.example", "https://web.example/x", False),
    ],
)
def test_without_a_scheme(pattern: str, place: str, expected: bool) -> None:
    assert allows([pattern], place) is expected
