import pytest

from podferry.contract.errors import CredentialsMissing
from podferry.storage.oss.keys import KEY_NAMES, ROLE_NAMES, OssKeys, OssSource, configured_keys, oss_source

ROLE = dict.fromkeys(ROLE_NAMES, "x")


@pytest.mark.parametrize("names", KEY_NAMES)
def test_every_vendor_name_is_known(names):
    held = {name: value for name, value in zip(names, "kst", strict=True) if name}
    assert configured_keys(held) == OssKeys(*held.values())
    assert oss_source(held) is OssSource.KEYS


def test_the_names_of_the_sdk_come_first():
    held = {"akId": "a", "akSecret": "b", "OSS_ACCESS_KEY_ID": "k", "OSS_ACCESS_KEY_SECRET": "s"}
    assert configured_keys(held) == OssKeys("k", "s")


@pytest.mark.parametrize(
    ("held", "missing"),
    [({"akId": "a"}, "akSecret"), ({"OSS_ACCESS_KEY_SECRET": "s"}, "OSS_ACCESS_KEY_ID")],
)
def test_half_a_pair_is_refused(held, missing):
    with pytest.raises(CredentialsMissing, match=f"{missing} is missing"):
        oss_source(held)


def test_keys_come_before_a_role_and_public_access_before_both():
    keys = {"akId": "a", "akSecret": "b"}
    assert oss_source(ROLE) is OssSource.ROLE
    assert oss_source(ROLE | keys) is OssSource.KEYS
    assert oss_source(ROLE | keys | {"OSS_SKIP_SIGNATURE": "true"}) is OssSource.ANONYMOUS
    assert oss_source({}) is OssSource.NONE
    assert oss_source({ROLE_NAMES[0]: "x"}) is OssSource.NONE
