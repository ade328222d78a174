import pytest

from podferry.contract.schemes import ALIASES, STORE_SCHEMES, canonical_place
from podferry.storage.engines import BUILT_IN


def test_the_schemes_of_our_engines() -> None:
    named = {name for engine in BUILT_IN for name in engine.scheme_names}
    assert set(STORE_SCHEMES) == named - {"file", "memory"}
    assert len(set(STORE_SCHEMES)) == len(STORE_SCHEMES)


def test_the_aliases_of_our_engines() -> None:
    declared = {
        other: scheme.names[0]
        for engine in BUILT_IN
        for scheme in engine.schemes
        for other in scheme.names[1:]
    }
    assert {**declared, "ftps": "ftp"} == ALIASES  # these two are declared apart: their tests differ


@pytest.mark.parametrize(
    ("scheme", "bucket", "place"),
    [
        ("s3a", "Data", ("s3", "Data")),
        ("ssh", "me@NAS:22", ("sftp", "nas:22")),
        ("smb", "LAB;me@nas", ("smb", "nas")),
        ("abfss", "data@account.dfs.core.windows.net", ("az", "data@account.dfs.core.windows.net")),
        ("tos", "data", ("tos", "data")),
    ],
)
def test_spellings_of_one_place(scheme: str, bucket: str, place: tuple[str, str]) -> None:
    assert canonical_place(scheme, bucket) == place
