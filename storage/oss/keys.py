"""The keys of OSS among the variables of the environment or of a Secret."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from podferry.contract.errors import CredentialsMissing
from podferry.storage.credentials.sources import is_true

KEY_NAMES = (
    ("OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET", "OSS_SESSION_TOKEN"),
    ("akId", "akSecret", ""),  # without a token
    ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN"),
)
"""Key, secret and token: of Alibaba's OSS SDK, of the Secrets of its CSI driver, of its other SDKs."""
ROLE_NAMES = ("ALIBABA_CLOUD_ROLE_ARN", "ALIBABA_CLOUD_OIDC_PROVIDER_ARN", "ALIBABA_CLOUD_OIDC_TOKEN_FILE")
"""What Alibaba's webhook sets for RRSA, RAM roles for service accounts."""
KEY_PREFIXES = ("OSS_", "ALIBABA_CLOUD_", "akId", "akSecret", "URL", "BUCKET")
"""Beginnings of the names that messages list."""


class OssKeys(NamedTuple):
    """The keys that requests are signed with; `security_token` is that of temporary ones, or empty."""

    access_key_id: str
    access_key_secret: str
    security_token: str = ""


class OssSource(enum.Enum):
    """Where the credentials of an OSS bucket come from."""

    ANONYMOUS = "anonymous"
    KEYS = "keys"
    ROLE = "role of the service account"
    NONE = "none"


def oss_source(variables: Mapping[str, str]) -> OssSource:
    """Where a store with this configuration gets its credentials.

    Raises:
        CredentialsMissing: Only one half of a key pair is set.
    """
    if is_true(variables.get("OSS_SKIP_SIGNATURE", "")):
        return OssSource.ANONYMOUS
    if configured_keys(variables) is not None:
        return OssSource.KEYS
    return OssSource.ROLE if all(map(variables.get, ROLE_NAMES)) else OssSource.NONE


def configured_keys(variables: Mapping[str, str]) -> OssKeys | None:
    """The first pair of keys, or None.

    Raises:
        CredentialsMissing: Only one half of it is set.
    """
    for names in KEY_NAMES:
        key, secret, token = (variables.get(name, "") for name in names)
        if key and secret:
            return OssKeys(key, secret, token)
        if key or secret:
            there, missing = names[:2] if key else names[1::-1]
            raise CredentialsMissing.of(f"{missing} is missing", f"{there} is set", f"Set {missing} too")
    return None
