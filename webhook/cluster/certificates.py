"""Issues the webhook's certificates: its own CA, and a leaf for its Service.

Pure except for the random keys. Certificates are renewed after two thirds of their lifetime. The bundle that
the API server trusts has both the new and the old CA, so that replicas can switch one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=365)
LEAF_LIFETIME = timedelta(days=30)
MAX_CLOCK_SKEW = timedelta(minutes=5)
"""Certificates are valid from this long before they are issued."""
NAME = "podferry webhook"
PrivateKey = ec.EllipticCurvePrivateKey


class Certificates(msgspec.Struct, frozen=True):
    """The content of the Secret, all PEM.

    Attributes:
        bundle: CA certificates that clients trust, newest first.
        ca_key: The newest CA's key.
        certificate, key: Of the leaf.
    """

    bundle: bytes
    ca_key: bytes
    certificate: bytes
    key: bytes


def renew_if_needed(current: Certificates | None, names: Sequence[str], now: datetime) -> Certificates:
    """Certificates for these DNS names that are valid at `now` (with a time zone).

    The same object if nothing needs renewal; if `current` is None or unreadable, all of them are issued.
    """
    parsed = _read(current) if current else None
    if current is None or parsed is None or _is_due(parsed[0][0], now):
        return _new_authority(parsed[0] if parsed else [], names, now)
    authorities, ca_key, leaf = parsed
    valid = [one for one in authorities if one.not_valid_after_utc > now]
    if _is_due(leaf, now) or _names(leaf) != list(names) or not _signed(leaf, authorities[0]):
        return _new_leaf(valid, ca_key, names, now)
    if valid != authorities:
        return msgspec.structs.replace(current, bundle=_pem(valid))
    return current


def renewal_time_of(current: Certificates) -> datetime:
    """When the first of the certificates is due for renewal."""
    authority = x509.load_pem_x509_certificates(current.bundle)[0]
    return min(map(_renewal_time, (authority, x509.load_pem_x509_certificate(current.certificate))))


def expiry_of(certificate: bytes) -> datetime:
    """When a certificate, the first of a PEM chain, expires. Raises `ValueError` if it is not PEM."""
    return x509.load_pem_x509_certificates(certificate)[0].not_valid_after_utc


def _new_authority(old: list[x509.Certificate], names: Sequence[str], now: datetime) -> Certificates:
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    subject = _name(f"{NAME} CA {now:%Y-%m-%d}")
    authority = (
        _builder(subject, subject, key, now, CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    # One earlier CA is enough: a leaf's lifetime is shorter than the third of the CA's that is left.
    valid = [one for one in old[:1] if one.not_valid_after_utc > now]
    return _new_leaf([authority, *valid], key, names, now)


def _new_leaf(
    authorities: list[x509.Certificate], ca_key: PrivateKey, names: Sequence[str], now: datetime
) -> Certificates:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authorities[0]
    leaf = (
        _builder(_name(NAME), issuer.subject, key, now, LEAF_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    return Certificates(_pem(authorities), _key_pem(ca_key), _pem([leaf]), _key_pem(key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - MAX_CLOCK_SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _read(current: Certificates) -> tuple[list[x509.Certificate], PrivateKey, x509.Certificate] | None:
    """The parsed CA certificates, CA key and leaf, or None if they are invalid or do not match."""
    try:
        authorities = x509.load_pem_x509_certificates(current.bundle)
        leaf = x509.load_pem_x509_certificate(current.certificate)
        ca_key, leaf_key = (
            serialization.load_pem_private_key(text, None) for text in (current.ca_key, current.key)
        )
    except (ValueError, TypeError):
        return None
    if not isinstance(ca_key, PrivateKey) or ca_key.public_key() != authorities[0].public_key():
        return None
    return (authorities, ca_key, leaf) if leaf_key.public_key() == leaf.public_key() else None


def _renewal_time(certificate: x509.Certificate) -> datetime:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return start + (end - start) * 2 / 3


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    return now >= _renewal_time(certificate) or now < certificate.not_valid_before_utc


def _names(leaf: x509.Certificate) -> list[str]:
    found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return found.value.get_values_for_type(x509.DNSName)


def _signed(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificates: Sequence[x509.Certificate]) -> bytes:
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates)


def _key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
