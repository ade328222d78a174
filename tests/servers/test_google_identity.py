"""Workload identity federation, whose files gcsfs does not read; google-auth does."""

import json

from podferry.storage.fsspec.google_credentials import google_token
from tests.storage.fsspec.test_google_credentials import FEDERATED


def test_a_federated_identity_becomes_credentials():
    found = google_token({"GOOGLE_APPLICATION_CREDENTIALS": json.dumps(FEDERATED)})
    assert type(found).__module__ == "google.auth.identity_pool"
    assert found.scopes == ["https://www.googleapis.com/auth/devstorage.read_write"]
