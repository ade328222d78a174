"""Reads CA certificates: PEM blocks (RFC 7468) with any text between them."""

from __future__ import annotations

import re
import ssl

from podferry.contract.errors import InvalidSpec

BEGIN = "-----BEGIN"
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")
REMEDY = "Give certificates in PEM format: -----BEGIN CERTIFICATE-----"


def parse_certificates(text: str) -> list[str]:
    """The certificates in a text, each in PEM format, without what is between them.

    Raises:
        InvalidSpec: There is none, or one is not valid.
    """
    found = CERTIFICATE.findall(text)
    if not found:
        raise InvalidSpec.of("there is no certificate", f"{len(text)} characters", REMEDY)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata="\n".join(found))
    except (ssl.SSLError, ValueError) as error:
        measured = f"{len(found)} blocks; {getattr(error, 'reason', None) or type(error).__name__}"
        raise InvalidSpec.of("a certificate is not valid", measured, REMEDY) from error
    return list(found)
