"""Whether the JSON of Google's credentials is whole: gcsfs reports a missing field as `KeyError`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from podferry.contract.errors import InvalidSpec

SERVICE_ACCOUNT, AUTHORIZED_USER, POOL = "service_account", "authorized_user", "external_account"
FIELDS = {
    SERVICE_ACCOUNT: ("client_email", "private_key", "token_uri"),
    AUTHORIZED_USER: ("client_id", "client_secret", "refresh_token"),
    POOL: ("audience", "subject_token_type", "token_url", "credential_source"),
}
"""What google-auth needs, by the type of the JSON."""
OBJECTS = ("credential_source",)
"""Fields that are objects; the others are text."""
REMEDIES = {
    SERVICE_ACCOUNT: "Store the key file as Google Cloud created it, or create another key",
    AUTHORIZED_USER: "Store the file that `gcloud auth application-default login` writes, or log in again",
    POOL: "Store the file that `gcloud iam workload-identity-pools create-cred-config` writes",
}


def check_fields(source: str, found: Mapping[str, Any]) -> None:
    """Check the JSON of a known type.

    Args:
        source: The variable or key that has it, for messages.
        found: The JSON. No value of it is shown, except its type.

    Raises:
        InvalidSpec: A field is missing, empty or of another type, or the private key cannot be read.
    """
    kind = str(found.get("type", ""))
    missing = [name for name in FIELDS.get(kind, ()) if not _is_present(name, found.get(name))]
    if missing:
        what, measured = f"{source} is incomplete", f"type {kind!r}; missing or empty: {', '.join(missing)}"
        raise InvalidSpec.of(what, measured, REMEDIES[kind])
    if kind == SERVICE_ACCOUNT:
        _check_private_key(source, found)


def _is_present(name: str, value: object) -> bool:
    return bool(value) and isinstance(value, dict if name in OBJECTS else str)


def _check_private_key(source: str, found: Mapping[str, Any]) -> None:
    try:
        module = import_module("google.oauth2.service_account")
    except ImportError:
        return  # the engine names what to install
    try:
        module.Credentials.from_service_account_info(found)
    except Exception as error:  # noqa: BLE001 - of many types, and their messages may have parts of the key
        measured = (
            f"{len(found['private_key'])} characters, no private key in PEM format: {type(error).__name__}"
        )
        remedy = f"{REMEDIES[SERVICE_ACCOUNT]}; a copy must keep its line breaks"
        raise InvalidSpec.of(f"the private_key of {source} is damaged", measured, remedy) from None
