import os

import pytest

FOREIGN = ("AWS_", "AZURE_", "GOOGLE_", "FSSPEC_", "STORAGE_EMULATOR_HOST")


@pytest.fixture(autouse=True)
def no_ambient_credentials(monkeypatch):
    """No test sees the credentials of whoever runs it, and none asks a metadata service."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent/config")
