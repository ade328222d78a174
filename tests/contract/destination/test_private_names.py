import pytest

from podferry.contract.destination.private_names import is_sync_record


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (".podferry/sync/1.json", True),
        (".podferry/sync", False),
        ("a/.podferry/sync/1", False),
        ("sync/1", False),
    ],
)
def test_only_what_is_in_its_directory_is_a_record(name, is_one):
    assert is_sync_record(name) is is_one
