import pytest

from podferry.contract.errors import FerryError, TemporaryError
from podferry.contract.uri import parse_uri
from podferry.storage.errors.credential_rules import CREDENTIAL_ERRORS
from podferry.storage.errors.exception_kinds import KIND_BY_CLASS_NAME
from podferry.storage.errors.kinds import KIND_BY_CODE, KIND_BY_STATUS, error_kind
from podferry.storage.errors.rules import CONNECTION_ERRORS, ERRORS
from podferry.storage.errors.translate import StoreLocation, store_error
from podferry.storage.errors.vendor_fields import VendorFields

PLACE = StoreLocation(parse_uri("s3://bucket/top"))


def test_every_kind_has_its_message():
    kinds = {*KIND_BY_CODE.values(), *KIND_BY_STATUS.values(), *KIND_BY_CLASS_NAME.values()}
    known = {*ERRORS, *CREDENTIAL_ERRORS, *CONNECTION_ERRORS}
    assert kinds <= known
    for kind in known:
        assert isinstance(store_error(kind, PLACE, "a"), FerryError)
    temporary = {kind for kind in ERRORS if isinstance(store_error(kind, PLACE), TemporaryError)}
    others = {
        "damaged",
        "unreadable",
        "other response",
        "s3 redirected",
        "cut",
        "certificate time",
        "proxy",
        "role",
        "redirected",
        "page",
        "no file",
        "no page",
        "locked",
        "unwritten",
    }
    assert temporary == {"unreachable", "throttled", "full", *others}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (VendorFields("missing", 404, "NoSuchBucket"), "bucket"),
        (VendorFields("exists", 409, "ConditionalRequestConflict"), "unreachable"),
        (VendorFields("missing", 403, "Unheard"), "missing"),
        (VendorFields(status=403), "denied"),
        (VendorFields("proxy", 403), "proxy"),
        (VendorFields("proxy", 407), "proxy credentials"),
        (VendorFields("denied", 403, "AccessDenied", detail="kms:Decrypt"), "kms denied"),
        (VendorFields(status=418), "invalid"),
        (VendorFields(status=500), "unreachable"),
        (VendorFields(), "unreachable"),
    ],
)
def test_the_code_decides_before_the_type_and_the_type_before_the_status(fields, kind):
    assert error_kind(fields) == kind
