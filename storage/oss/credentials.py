"""Loads the keys of one OSS store: configured ones, or those of a role."""

from __future__ import annotations

from podferry.contract.errors import CredentialsMissing
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.oss.assume_role import AssumedRole
from podferry.storage.oss.endpoint import OssAccess
from podferry.storage.oss.keys import OssKeys, OssSource
from podferry.storage.request_builder import is_printable_ascii


class OssCredentials:
    """The current keys of one store.

    Attributes:
        anonymous: Whether requests are not signed at all.
    """

    def __init__(self, access: OssAccess) -> None:
        self.anonymous = access.source is OssSource.ANONYMOUS
        lasting = access.source is OssSource.KEYS and access.reload_credentials is None
        load = AssumedRole(access).keys if access.source is OssSource.ROLE else access.keys
        self._keys = RefreshedValue(lambda: _checked(load()), lasting)

    async def prepare(self) -> None:
        """Read the keys again if they are due.

        Raises:
            CredentialsMissing: They are not valid in a header.
            Unavailable: The service of the role gives none.
        """
        if not self.anonymous:
            await self._keys.refresh()

    @property
    def current(self) -> OssKeys | None:
        """The keys; None before `prepare`, and for anonymous access."""
        return self._keys.value


def _checked(keys: OssKeys) -> OssKeys:
    if not is_printable_ascii(keys.access_key_id + keys.security_token):
        what = "a key or token for OSS is not valid in a header"
        raise CredentialsMissing.of(what, "", "Store it without line breaks")
    return keys
