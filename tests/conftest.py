"""What holds for every test: nobody's credentials, no metadata service, logs as they are by default."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import structlog

FOREIGN = ("AWS_", "AZURE_", "GOOGLE_", "FSSPEC_", "STORAGE_EMULATOR_HOST")


@pytest.fixture(autouse=True)
def no_ambient_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the credentials of whoever runs it, and none asks a metadata service."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent/config")


@pytest.fixture(autouse=True)
def default_logs() -> Iterator[None]:
    """A verb that ran in this process has sent logs to a stream that its test took away again."""
    yield
    structlog.reset_defaults()
