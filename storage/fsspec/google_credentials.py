"""The credentials of Google Cloud Storage, as gcsfs takes them.

gcsfs takes a path that does not exist for a token, and does not know the files of workload identity
federation: files are read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.storage.credentials.sources import is_true
from podferry.storage.fsspec.engine import SECRET_KEYS

FILE_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
ANONYMOUS = "anon"
"""What gcsfs takes for no credentials."""
OF_GCSFS = ("service_account", "authorized_user")
"""Types of files that gcsfs reads; google-auth has those of workload identity pools."""
POOL_MODULES = {False: "google.auth.identity_pool", True: "google.auth.aws"}
"""Of pools; true for those whose tokens Amazon's metadata service gives."""
SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"


def google_token(variables: Mapping[str, str]) -> object:
    """`anon`, the content of a key file, credentials, or the name of Google's default search.

    Raises:
        CredentialsMissing: The file does not exist.
        InvalidSpec: It is no JSON of Google's.
    """
    if is_true(variables.get("GOOGLE_SKIP_SIGNATURE", "")):
        return ANONYMOUS
    name = next((name for name in (FILE_VARIABLE, *SECRET_KEYS) if variables.get(name)), "")
    if not name:
        return "google_default"
    text = variables[name]
    return _credentials(name, text if text.lstrip().startswith("{") else _read(name, text))


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


def _credentials(name: str, text: str) -> object:
    try:
        found: dict[str, Any] = json.loads(text)
        kind = str(found.get("type", ""))
    except (ValueError, AttributeError):  # the message would contain the key
        what = f"{name} is neither a path nor JSON" if name == FILE_VARIABLE else f"{name} is not JSON"
        raise InvalidSpec.of(what, "", "Store the key file as it is") from None
    if kind in OF_GCSFS:
        return found
    try:
        module = import_module(POOL_MODULES["environment_id" in found.get("credential_source", {})])
        return module.Credentials.from_info(found, scopes=[SCOPE])
    except Exception as error:  # noqa: BLE001 - of many types, which say nothing more
        remedy = "Store the JSON of a service account, or of a workload identity pool"
        what = f"{name} has no credentials of Google Cloud"
        raise InvalidSpec.of(what, f"type {kind[:40]!r}, {type(error).__name__}", remedy) from None
