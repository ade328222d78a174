"""Why there is no connection: what OpenSSL, rustls (obstore) and proxies report, in common terms."""

from __future__ import annotations

import ssl

import msgspec

from podferry.contract.lazy_pattern import lazy_pattern


class ConnectionFailure(msgspec.Struct, frozen=True):
    """What happened, as in `podferry.storage.errors.rules`, and the reason in words."""

    kind: str
    reason: str


UNTRUSTED = ConnectionFailure("untrusted", "unknown issuer")
RUSTLS_PATTERN = lazy_pattern(
    r"InvalidCertificate\(\s*(\w+)|InvalidMessage\(\s*(InvalidContentType)|\b(ProxyAuthRequired|TunnelUnsuccessful)\b"
)
"""rustls's `Error` and hyper-util's `TunnelError` in their debug form."""
RUSTLS_FAILURES = {
    "UnknownIssuer": UNTRUSTED,
    "BadSignature": ConnectionFailure("untrusted", "its signature does not match the issuer"),
    "NotValidForName": ConnectionFailure("wrong name", "other name"),
    "Expired": ConnectionFailure("certificate time", "expired"),
    "NotValidYet": ConnectionFailure("certificate time", "not yet valid"),
    "CaUsedAsEndEntity": ConnectionFailure("authority", "basicConstraints CA:TRUE"),
    "InvalidContentType": ConnectionFailure("no tls", "the answer is not TLS"),
    "ProxyAuthRequired": ConnectionFailure("proxy credentials", "HTTP 407"),
    "TunnelUnsuccessful": ConnectionFailure("proxy", "it refuses CONNECT"),
}
PRESENTED_NAME = lazy_pattern(r'\b(?:DnsName|IpAddress)\(\\?"?([^"\\)]+)')
NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons for an answer that is not TLS; they differ by its version."""
VERIFY_CODES = {
    **dict.fromkeys((62, 63, 64), "wrong name"),
    **dict.fromkeys((9, 10), "certificate time"),
}
"""X509_V_ERR_* of OpenSSL's x509_vfy.h: names, and times."""


def rustls_failure(text: str) -> ConnectionFailure | None:
    """The failure in obstore's text, or None."""
    found = RUSTLS_PATTERN.search(text)
    if found is None:
        return None
    name = next(filter(None, found.groups())).removesuffix("Context")
    if name == "Other" and "CaUsedAsEndEntity" in text:
        name = "CaUsedAsEndEntity"
    failure = RUSTLS_FAILURES.get(name, ConnectionFailure("untrusted", name))
    presented = PRESENTED_NAME.findall(text.partition("presented:")[2])
    if failure.kind == "wrong name" and presented:
        return ConnectionFailure(failure.kind, f"it is for {', '.join(dict.fromkeys(presented))}"[:200])
    return failure


def openssl_failure(error: ssl.SSLError) -> ConnectionFailure | None:
    """The failure that an exception of Python's ssl describes, or None for one that has no name here."""
    if isinstance(error, ssl.SSLCertVerificationError):
        code = getattr(error, "verify_code", None)
        if code is None:  # aiohttp's own exceptions have the attributes of their cause only
            return None
        return ConnectionFailure(VERIFY_CODES.get(code, "untrusted"), error.verify_message.rstrip(".")[:200])
    if getattr(error, "reason", "") in NOT_TLS:
        return RUSTLS_FAILURES["InvalidContentType"]
    return None
