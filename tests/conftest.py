"""Fixtures of every test: no ambient credentials, no metadata service, default logging."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterator

import pytest
import structlog

FOREIGN = ("AWS_", "AZURE_", "GOOGLE_", "FSSPEC_", "STORAGE_EMULATOR_HOST")


@pytest.fixture(autouse=True)
def no_ambient_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the credentials of the user who runs the tests, and disable the metadata service."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
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
