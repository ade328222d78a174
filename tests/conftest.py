"""Fixtures of every test: no ambient credentials or proxies, no metadata service, default logging."""

from __future__ import annotations

import builtins
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

# No deadlines: on a busy machine any example may take long. The same examples in each run: whoever changes a
# module looks for others with `pytest --hypothesis-profile=explore tests/...`.
settings.register_profile("podferry", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("podferry")

pytest.register_assert_rewrite(  # before any test imports them
    "podferry.storage.contract_suite",
    "tests.support.request_builder_contract",
)

# In the background of a shell and under nohup they are ignored. Programs that tests start would inherit that,
# but no handler.
for number, handler in {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: lambda *_: None}.items():
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

PROGRAMS = (
    "cli/cache/test_read.py",
    "cli/cache/test_serve.py",
    "cli/run/",
    "cli/test_process_exit.py",
    "components/",
    "demo/",
    "faults/",
    "pipelines/",
    "sidecar/launch/",
    "sidecar/scenarios/",
    "storage/obstore/test_thread_exit.py",
    "test_packaging.py",
    "trainer/",
    "webhook/admission/test_listener.py",
)
"""Tests that start whole programs: they take as long as all others, and `make test` some minutes."""
OWN_SETUPS = ("cluster", "e2e", "examples", "kfp", "servers", "two_nodes", "writers")
"""Markers of tests that need more than `make test` installs: each has a target of its own."""
TESTS = Path(__file__).parent
FOREIGN = ("AWS_", "AZURE_", "GOOGLE_", "FSSPEC_", "STORAGE_EMULATOR_HOST")
NETWORK = ("CA_BUNDLE", "_PROXY", "_proxy")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start whole programs, if no other target runs them."""
    for item in items:
        if any(item.get_closest_marker(name) for name in OWN_SETUPS):
            continue
        if item.path.relative_to(TESTS).as_posix().startswith(PROGRAMS):
            item.add_marker("programs")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Half more workers than cores: tests wait for processes of their own for a third of the time."""
    cores = len(os.sched_getaffinity(0))
    return cores + cores // 2


@pytest.fixture(scope="session", autouse=True)
def own_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs of these tests leave nothing behind: killed and torn ones keep their directories on purpose."""
    tmp_path_factory.getbasetemp()  # not below the directory that ends with the session
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="podferry-tests-") as own:
        Path(own).chmod(0o711)  # some tests act as another user
        patch.setenv("TMPDIR", own)
        patch.setattr(tempfile, "tempdir", own)
        yield
        for run in Path(own).glob(f"podferry-{os.getuid()}-*"):
            shutil.rmtree(Path("/dev/shm") / run.name, ignore_errors=True)


@pytest.fixture(autouse=True)
def no_ambient_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the credentials and proxies of the user who runs the tests; disable the metadata service."""
    for name in [name for name in os.environ if name.startswith(FOREIGN) or name.endswith(NETWORK)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent/config")


@pytest.fixture(autouse=True)
def default_print(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what KFP's local runner may leave behind: parallel tasks indent `print` for the whole process."""
    monkeypatch.setattr(builtins, "print", builtins.print)


@pytest.fixture(autouse=True)
def default_logs() -> Iterator[None]:
    """Undo the logging setup of a command that ran in this process."""
    yield
    structlog.reset_defaults()
