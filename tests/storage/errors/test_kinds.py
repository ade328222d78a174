import pytest

from podferry.contract.errors import FerryError, TemporaryError
from podferry.contract.uri import parse_uri
from podferry.storage.errors.kinds import KIND_BY_CODE, KIND_BY_STATUS, error_kind
from podferry.storage.errors.translate import CREDENTIAL_ERRORS, ERRORS, StoreLocation, store_error
from podferry.storage.errors.vendor_fields import KIND_BY_CLASS_NAME, VendorFields

PLACE = StoreLocation(parse_uri("s3://bucket/top"))


def test_every_kind_has_its_message():
    kinds = {*KIND_BY_CODE.values(), *KIND_BY_STATUS.values(), *KIND_BY_CLASS_NAME.values()}
    assert kinds <= {*ERRORS, *CREDENTIAL_ERRORS}
    for kind in (*ERRORS, *CREDENTIAL_ERRORS):
        assert isinstance(store_error(kind, PLACE, "a"), FerryError)
    temporary = {kind for kind in ERRORS if isinstance(store_error(kind, PLACE), TemporaryError)}
    assert temporary == {"unreachable", "throttled", "full", "damaged"}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (VendorFields("missing", 404, "NoSuchBucket"), "bucket"),
        (VendorFields("exists", 409, "ConditionalRequestConflict"), "unreachable"),
        (VendorFields("missing", 403, "Unheard"), "missing"),
        (VendorFields(status=403), "denied"),
        (VendorFields(status=418), "invalid"),
        (VendorFields(status=500), "unreachable"),
        (VendorFields(), "unreachable"),
    ],
)
def test_the_code_decides_before_the_type_and_the_type_before_the_status(fields, kind):
    assert error_kind(fields) == kind
