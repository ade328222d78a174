"""Verifies signatures as Alibaba documents them, versions 1 and 4, in headers and in URLs.

Sources: "Include signatures in the Authorization header" and "Include signatures in the URL", of V1 and of
V4, in Alibaba's OSS API reference. None of it is shared with podferry.
"""

from __future__ import annotations

import base64
import calendar
import hashlib
import hmac
import time
from email.utils import mktime_tz, parsedate_tz
from typing import NamedTuple
from urllib.parse import quote, unquote

from tests.support.oss.errors import OssError

MAX_SKEW_SECONDS = 15 * 60
SUBRESOURCES = frozenset(
    [
        "acl",
        "append",
        "bucketInfo",
        "cors",
        "delete",
        "encryption",
        "lifecycle",
        "location",
        "logging",
        "objectMeta",
        "partNumber",
        "policy",
        "position",
        "response-cache-control",
        "response-content-disposition",
        "response-content-encoding",
        "response-content-language",
        "response-content-type",
        "response-expires",
        "restore",
        "security-token",
        "stat",
        "symlink",
        "tagging",
        "uploadId",
        "uploads",
        "versionId",
        "versioning",
        "versions",
        "website",
        "continuation-token",
        "x-oss-process",
    ]
)
"""Parameters of a query that signatures of version 1 cover."""
SIGNED_ALWAYS = ("content-type", "content-md5")


class Account(NamedTuple):
    """Keys; temporary ones have a token, and a time when it expires."""

    secret: str
    token: str = ""
    expires: float = float("inf")


class Signed(NamedTuple):
    """What a signature covers; headers have lower-case names."""

    method: str
    bucket: str
    key: str
    query: list[tuple[str, str]]
    headers: dict[str, str]

    def parameter(self, name: str) -> str:
        return next((value for found, value in self.query if found == name), "")


def raw_query(text: str) -> list[tuple[str, str]]:
    """The parameters of a query, decoded."""
    pairs = [pair.partition("=") for pair in text.split("&") if pair]
    return [(unquote(name), unquote(value)) for name, _, value in pairs]


def verify(signed: Signed, accounts: dict[str, Account], region: str, shift: float = 0) -> bool:
    """Whether a request is signed, and not anonymous. `shift` seconds are added to the clock.

    Raises:
        OssError: The signature is wrong.
    """
    authorization, now = signed.headers.get("authorization", ""), time.time() + shift
    if authorization.startswith("OSS4-HMAC-SHA256 "):
        fields = dict(part.strip().split("=", 1) for part in authorization[17:].split(","))
        moment = signed.headers.get("x-oss-date", "")
        return _version4(signed, fields, moment, accounts, region, now)
    if authorization.startswith("OSS "):
        return _version1(signed, authorization[4:], accounts, now)
    if signed.parameter("x-oss-signature-version"):
        return _version4_in_url(signed, accounts, region, now)
    if signed.parameter("Signature"):
        return _version1_in_url(signed, accounts, now)
    if authorization:
        raise OssError("InvalidArgument", "Unknown signature method.")
    return False


def _account(access_key: str, token: str, accounts: dict[str, Account], now: float) -> Account:
    account = accounts.get(access_key)
    if account is None:
        raise OssError("InvalidAccessKeyId", OSSAccessKeyId=access_key)
    if token != account.token:
        raise OssError("InvalidSecurityToken")
    if now > account.expires:
        raise OssError("SecurityTokenExpired")
    return account


def _matches(expected: str, sent: str, text: str) -> None:
    if not hmac.compare_digest(expected, sent):
        raise OssError("SignatureDoesNotMatch", SignatureProvided=sent, StringToSign=text)


def _seconds(moment: str) -> float:
    try:
        return calendar.timegm(time.strptime(moment, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        raise OssError("InvalidArgument", "The x-oss-date is invalid.") from None


def _version4(signed, fields, moment, accounts, region, now, payload=""):
    access_key, day, signed_region, product, request = fields["Credential"].split("/")
    token = signed.headers.get("x-oss-security-token") or signed.parameter("x-oss-security-token")
    account = _account(access_key, token, accounts, now)
    if not payload and abs(_seconds(moment) - now) > MAX_SKEW_SECONDS:
        raise OssError("RequestTimeTooSkewed")
    if signed_region != region:
        raise OssError("InvalidArgument", "Invalid signing region in Authorization header.")
    if (product, request, moment[:8]) != ("oss", "aliyun_v4_request", day):
        raise OssError("InvalidArgument", "Invalid credential in Authorization header.")
    additional = [name for name in fields.get("AdditionalHeaders", "").split(";") if name]
    payload = payload or signed.headers.get("x-oss-content-sha256", "")
    if payload != "UNSIGNED-PAYLOAD":
        raise OssError("InvalidArgument", "The x-oss-content-sha256 is invalid.")
    canonical = _canonical_request(signed, additional, payload)
    scope = f"{day}/{region}/oss/aliyun_v4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"OSS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"
    key = f"aliyun_v4{account.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    _matches(hmac.new(key, text.encode(), "sha256").hexdigest(), fields["Signature"], text)
    return True


def _canonical_request(signed: Signed, additional: list[str], payload: str) -> str:
    path = quote(f"/{signed.bucket}/{signed.key}" if signed.bucket else "/", safe="/")
    pairs = sorted((quote(name, safe=""), quote(value, safe="")) for name, value in signed.query)
    query = "&".join(
        f"{name}={value}" if value else name for name, value in pairs if name != "x-oss-signature"
    )
    covered = {
        name: value
        for name, value in signed.headers.items()
        if name.startswith("x-oss-") or name in SIGNED_ALWAYS or name in additional
    }
    headers = "".join(f"{name}:{covered[name].strip()}\n" for name in sorted(covered))
    return f"{signed.method}\n{path}\n{query}\n{headers}\n{';'.join(sorted(additional))}\n{payload}"


def _version4_in_url(signed, accounts, region, now):
    moment, lifetime = signed.parameter("x-oss-date"), int(signed.parameter("x-oss-expires"))
    if now > _seconds(moment) + lifetime:
        raise OssError("AccessDenied", "Request has expired.")
    fields = {
        "Credential": signed.parameter("x-oss-credential"),
        "Signature": signed.parameter("x-oss-signature"),
        "AdditionalHeaders": signed.parameter("x-oss-additional-headers"),
    }
    return _version4(signed, fields, moment, accounts, region, now, "UNSIGNED-PAYLOAD")


def _version1(signed, credential, accounts, now):
    access_key, _, signature = credential.partition(":")
    moment = signed.headers.get("x-oss-date") or signed.headers.get("date", "")
    token = signed.headers.get("x-oss-security-token") or signed.headers.get("security-token", "")
    account = _account(access_key, token, accounts, now)
    parsed = parsedate_tz(moment)
    if parsed is None or abs(mktime_tz(parsed) - now) > MAX_SKEW_SECONDS:
        raise OssError("RequestTimeTooSkewed")
    _check_version1(signed, account, moment, signature)
    return True


def _version1_in_url(signed, accounts, now):
    account = _account(signed.parameter("OSSAccessKeyId"), signed.parameter("security-token"), accounts, now)
    if now > int(signed.parameter("Expires")):
        raise OssError("AccessDenied", "Request has expired.")
    _check_version1(signed, account, signed.parameter("Expires"), signed.parameter("Signature"))
    return True


def _check_version1(signed: Signed, account: Account, moment: str, signature: str) -> None:
    pairs = sorted(pair for pair in signed.query if pair[0] in SUBRESOURCES)
    query = "&".join(f"{name}={value}" if value else name for name, value in pairs)
    resource = (f"/{signed.bucket}/{signed.key}" if signed.bucket else "/") + (f"?{query}" if query else "")
    headers = "".join(
        f"{name}:{value}\n" for name, value in sorted(signed.headers.items()) if name.startswith("x-oss-")
    )
    content = f"{signed.headers.get('content-md5', '')}\n{signed.headers.get('content-type', '')}"
    text = f"{signed.method}\n{content}\n{moment}\n{headers}{resource}"
    expected = base64.b64encode(hmac.digest(account.secret.encode(), text.encode(), "sha1")).decode()
    _matches(expected, signature, text)
