import pytest

from podferry.storage.factory import open_store


@pytest.fixture
def store(fresh_s3, config, quick):
    return open_store(fresh_s3, config, quick)
