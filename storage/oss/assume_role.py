"""The keys of the RAM role of a service account (RRSA): Alibaba's STS gives them for the pod's token.

Source: "AssumeRoleWithOIDC", Alibaba's RAM API reference. The request needs no signature.
"""

from __future__ import annotations

import calendar
import json
import threading
import time
import urllib.request
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode

from podferry.contract.errors import FerryError
from podferry.storage.credentials.endpoints import host_label
from podferry.storage.credentials.sources import is_true
from podferry.storage.errors.translate import store_error
from podferry.storage.network.tls import tls_context
from podferry.storage.oss.endpoint import OssAccess
from podferry.storage.oss.keys import OssKeys

VALID_SECONDS = 3600
"""Asked for: the longest that a role allows by default."""
EARLY_SECONDS = 300
"""Before keys expire, new ones are asked for: clocks differ, and requests take time."""
TIMEOUT_SECONDS = 10
MAX_RESPONSE_BYTES = 1 << 20


class AssumedRole:
    """The keys of one role; asks for new ones shortly before they expire."""

    def __init__(self, access: OssAccess) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._current: OssKeys | None = None
        self._expires = 0.0

    def keys(self) -> OssKeys:
        """The current keys. Blocks.

        Raises:
            Unavailable: The service gives none, and the last ones have expired.
        """
        with self._lock:
            if self._current is None or time.time() > self._expires - EARLY_SECONDS:
                try:
                    self._current, self._expires = self._ask()
                except FerryError:
                    if self._current is None or time.time() > self._expires:
                        raise
            return self._current

    def _ask(self) -> tuple[OssKeys, float]:
        url = service_url(self._access)
        try:
            token = Path(self._access.variables["ALIBABA_CLOUD_OIDC_TOKEN_FILE"]).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise self._refused(f"the token file: {type(error).__name__}") from error
        request = urllib.request.Request(url, self._form(token), method="POST")  # noqa: S310 - an endpoint
        try:
            with self._opener(url).open(request, timeout=TIMEOUT_SECONDS) as response:
                return _parsed(response.read(MAX_RESPONSE_BYTES))
        except HTTPError as error:
            said = _code(error.read(MAX_RESPONSE_BYTES))
            evidence = f"{service_host(url)}: HTTP {error.code}{' ' if said else ''}{said}"
            if error.code >= 500:
                raise store_error("role", self._access.location, evidence=evidence) from error
            raise self._refused(evidence) from error
        except OSError as error:
            reason = getattr(error, "reason", error)
            evidence = f"{service_host(url)}: {reason}"
            raise store_error("role", self._access.location, evidence=evidence) from error
        except (ValueError, KeyError) as error:
            raise self._refused(f"{service_host(url)}: the response has no keys") from error

    def _form(self, token: str) -> bytes:
        variables = self._access.variables
        fields = {
            "RoleArn": variables["ALIBABA_CLOUD_ROLE_ARN"],
            "OIDCProviderArn": variables["ALIBABA_CLOUD_OIDC_PROVIDER_ARN"],
            "OIDCToken": token,
            "RoleSessionName": variables.get("ALIBABA_CLOUD_ROLE_SESSION_NAME") or "podferry",
            "DurationSeconds": str(VALID_SECONDS),
        }
        return urlencode(fields).encode()

    def _opener(self, url: str) -> urllib.request.OpenerDirector:
        network = self._access.network
        proxy = network.proxies.proxy_for(url)
        return urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": proxy.url, "https": proxy.url} if proxy else {}),
            urllib.request.HTTPSHandler(context=tls_context(network.ca.pem)),
        )

    def _refused(self, evidence: str) -> FerryError:
        return store_error("no role", self._access.location, evidence=evidence)


def service_url(access: OssAccess) -> str:
    """Where the role is asked for: in the bucket's region, inside the VPC if the endpoint of OSS is."""
    variables = access.variables
    host = variables.get("ALIBABA_CLOUD_STS_ENDPOINT", "")
    if not host:
        inside = access.internal or is_true(variables.get("ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED", ""))
        region = variables.get("ALIBABA_CLOUD_STS_REGION") or access.region
        host = f"{'sts-vpc' if inside else 'sts'}.{host_label('the region', region)}.aliyuncs.com"
    base = host if "://" in host else f"https://{host}"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    query = {"Action": "AssumeRoleWithOIDC", "Version": "2015-04-01", "Format": "JSON", "Timestamp": now}
    return f"{base.rstrip('/')}/?{urlencode(query)}"


def service_host(url: str) -> str:
    """The part of a URL that a message shows."""
    return url.partition("/?")[0]


def _parsed(body: bytes) -> tuple[OssKeys, float]:
    found = json.loads(body)["Credentials"]
    keys = OssKeys(found["AccessKeyId"], found["AccessKeySecret"], found["SecurityToken"])
    return keys, calendar.timegm(time.strptime(found["Expiration"], "%Y-%m-%dT%H:%M:%SZ"))


def _code(body: bytes) -> str:
    try:
        code = json.loads(body)["Code"]
    except (ValueError, KeyError, TypeError):
        return ""
    return str(code)[:80] if str(code).replace(".", "").isalnum() else ""
