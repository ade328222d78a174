import pytest

from podferry.contract.spec import default_path


@pytest.mark.parametrize(("name", "path"), [("", "/dev/shm/dataset"), ("test-2", "/dev/shm/test-2")])
def test_default_path(name: str, path: str) -> None:
    assert default_path(name) == path
