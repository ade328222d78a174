"""The credentials of Google Cloud Storage, as gcsfs takes them.

gcsfs takes a path that does not exist for a token, and does not know the files of workload identity
federation: files are read here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.storage.credentials.sources import is_true
from podferry.storage.fsspec.engine import SECRET_KEYS
from podferry.storage.fsspec.google_fields import AUTHORIZED_USER, SERVICE_ACCOUNT, check_fields

FILE_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
ANONYMOUS = "anon"
"""What gcsfs takes for no credentials."""
OF_GCSFS = (SERVICE_ACCOUNT, AUTHORIZED_USER)
"""Types of files that gcsfs reads; google-auth has those of workload identity pools."""
POOL_MODULES = {False: "google.auth.identity_pool", True: "google.auth.aws"}
"""Of pools; true for those whose tokens Amazon's metadata service gives."""
SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"


def google_token(variables: Mapping[str, str]) -> object:
    """`anon`, the content of a key file, credentials, or the name of Google's default search.

    Raises:
        CredentialsMissing: The file does not exist.
        InvalidSpec: It is no JSON of Google's, or incomplete.
    """
    if is_true(variables.get("GOOGLE_SKIP_SIGNATURE", "")):
        return ANONYMOUS
    name = next((name for name in (FILE_VARIABLE, *SECRET_KEYS) if variables.get(name)), "")
    if not name:
        _check_default_file()
        return "google_default"
    text = variables[name]
    if text.lstrip().startswith(("{", "[")):
        return _credentials(name, text)
    return _credentials(f"{name} ({text})", _read(name, text))


def _check_default_file() -> None:
    """Check what `gcloud` has left for Google's default search, which calls a broken file no credentials."""
    folder = os.environ.get("CLOUDSDK_CONFIG") or Path(
        os.environ.get("HOME") or "/nonexistent", ".config/gcloud"
    )
    file = Path(folder, "application_default_credentials.json")
    if os.environ.get(FILE_VARIABLE):  # it comes first, and is another's where credentials come from a Secret
        return
    with suppress(OSError, UnicodeDecodeError):
        check_fields(str(file), _object(str(file), file.read_text(encoding="utf-8")))


def _read(name: str, path: str) -> str:
    if name != FILE_VARIABLE:
        raise InvalidSpec.of(f"{name} is not JSON", "", "Store the key file as it is")
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"{FILE_VARIABLE} names a file that cannot be read"
        remedy = "Correct the path, or store the JSON itself under this name in the Secret, as it is"
        # Not a path: a key that is encoded twice, or cut.
        shown = (
            path if path.startswith(("/", "~", ".")) or path.endswith(".json") else f"{len(path)} characters"
        )
        raise CredentialsMissing.of(what, f"{shown[:200]}: {type(error).__name__}", remedy) from None


def _credentials(source: str, text: str) -> object:
    found = _object(source, text)
    kind = str(found.get("type", ""))
    check_fields(source, found)
    if kind in OF_GCSFS:
        return found
    try:
        module = import_module(POOL_MODULES["environment_id" in found.get("credential_source", {})])
        return module.Credentials.from_info(found, scopes=[SCOPE])
    except Exception as error:  # noqa: BLE001 - of many types, which say nothing more
        remedy = "Store the JSON of a service account, an authorized user or a workload identity pool"
        shown = f"type {kind[:40]!r}" if kind else "it has no type"
        what = f"{source} has no credentials of Google Cloud"
        raise InvalidSpec.of(what, f"{shown}, {type(error).__name__}", remedy) from None


def _object(source: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:  # the message would contain the key
        what = f"{source} is neither a path nor JSON" if source == FILE_VARIABLE else f"{source} is not JSON"
        raise InvalidSpec.of(what, "", "Store the key file as it is") from None
    if not isinstance(found, dict):
        what = f"{source} is JSON, but not an object with credentials"
        raise InvalidSpec.of(what, f"it is a {type(found).__name__}", "Store the key file as it is")
    return found
