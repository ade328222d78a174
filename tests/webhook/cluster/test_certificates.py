from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.webhook.cluster.certificates import (
    CA_LIFETIME,
    LEAF_LIFETIME,
    Certificates,
    renew_if_needed,
    renewal_time_of,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = ["podferry-webhook.podferry.svc"]


def bundle(certificates: Certificates) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(certificates.bundle)


def leaf(certificates: Certificates) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificates.certificate)


@pytest.fixture(scope="module")
def fresh() -> Certificates:
    return renew_if_needed(None, NAMES, NOW)


def test_the_first(fresh: Certificates) -> None:
    (authority,) = bundle(fresh)
    leaf(fresh).verify_directly_issued_by(authority)
    names = leaf(fresh).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == NAMES
    assert leaf(fresh).not_valid_after_utc == NOW + LEAF_LIFETIME
    assert authority.not_valid_after_utc == NOW + CA_LIFETIME


def test_nothing_to_do(fresh: Certificates) -> None:
    assert renew_if_needed(fresh, NAMES, NOW + LEAF_LIFETIME / 2) is fresh


def test_a_leaf_is_renewed_by_the_same_authority(fresh: Certificates) -> None:
    later = renew_if_needed(fresh, NAMES, renewal_time_of(fresh))
    assert (later.bundle, later.ca_key) == (fresh.bundle, fresh.ca_key)
    assert leaf(later).not_valid_after_utc > leaf(fresh).not_valid_after_utc


def test_a_new_authority_is_trusted_in_addition_to_the_old_one(fresh: Certificates) -> None:
    later = renew_if_needed(fresh, NAMES, NOW + CA_LIFETIME * 2 / 3)
    new, old = bundle(later)
    assert old == bundle(fresh)[0]
    leaf(later).verify_directly_issued_by(new)
    end = renew_if_needed(later, NAMES, NOW + CA_LIFETIME + timedelta(seconds=1))
    assert bundle(end) == [new]


def test_an_authority_that_has_ended_is_trusted_no_longer(fresh: Certificates) -> None:
    end = NOW + CA_LIFETIME + timedelta(seconds=1)
    later = renew_if_needed(None, NAMES, end)
    both = msgspec.structs.replace(later, bundle=later.bundle + fresh.bundle)
    assert renew_if_needed(both, NAMES, end - timedelta(seconds=60)) is both
    assert renew_if_needed(both, NAMES, end) == later


def test_other_names_need_another_leaf(fresh: Certificates) -> None:
    assert bundle(renew_if_needed(fresh, ["other.svc"], NOW)) == bundle(fresh)


@pytest.mark.parametrize("field", ["bundle", "ca_key", "certificate", "key"])
@pytest.mark.parametrize("value", [b"", b"rubbish", None])
def test_what_cannot_be_used_is_replaced(fresh: Certificates, field: str, value: bytes | None) -> None:
    other = renew_if_needed(None, NAMES, NOW)
    broken = msgspec.structs.replace(fresh, **{field: getattr(other, field) if value is None else value})
    mended = renew_if_needed(broken, NAMES, NOW)
    assert mended != broken
    leaf(mended).verify_directly_issued_by(bundle(mended)[0])
    assert renew_if_needed(mended, NAMES, NOW) is mended


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=40))
def test_at_any_time_the_leaf_is_good_and_trusted_before_and_after(days: list[int]) -> None:
    """With checks at least every 20 days, no leaf is served that the previous bundle does not trust, unless
    the authority itself is new."""
    now, certificates = NOW, renew_if_needed(None, NAMES, NOW)
    for step in days:
        now += timedelta(days=step)
        before, certificates = certificates, renew_if_needed(certificates, NAMES, now)
        assert leaf(certificates).not_valid_before_utc <= now < leaf(certificates).not_valid_after_utc
        assert any(issued(before, authority) for authority in bundle(certificates))
        assert all(authority.not_valid_after_utc > now for authority in bundle(certificates))


def issued(certificates: Certificates, authority: x509.Certificate) -> bool:
    return leaf(certificates).issuer == authority.subject
