"""Real servers, for `pytest -m servers`; without that mark nothing here runs."""

import itertools
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "storage")]
pytest.register_assert_rewrite("store_contract")

# gcsfs decides at its import; with it, every first call to an emulator waits for a minute.
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
COUNTER = itertools.count()


def pytest_collection_modifyitems(config, items):
    asked = "servers" in (config.getoption("markexpr") or "")
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.servers)
        item.add_marker(pytest.mark.timeout(600))  # the first run builds the servers
    if not asked and ours:
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in set(ours)]


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    return tmp_path_factory


@pytest.fixture(scope="session")
def versitygw(folders):
    from running import versitygw

    with versitygw(folders.mktemp("versitygw"), "key-of-tests", "secret-of-tests") as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def azurite(folders):
    from running import azurite

    with azurite(folders.mktemp("azurite")) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def fake_gcs(folders):
    from running import fake_gcs

    with fake_gcs(folders.mktemp("gcs")) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def ftp(folders):
    from serving_ftp import serving

    with serving(folders.mktemp("ftp")) as address:
        yield address


@pytest.fixture
def fresh():
    return f"run {os.getpid()}/n+{next(COUNTER)} %20"
