import errno
import ftplib

import pytest
from obstore import exceptions as obstore

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    BucketNotFound,
    Changed,
    Corrupt,
    CredentialsMissing,
    InvalidSpec,
    NotFound,
    Throttled,
    Unavailable,
)
from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation, store_error, translate, translating

FTP_PERMANENT, FTP_TEMPORARY = ftplib.error_perm, ftplib.error_temp
PLACE = StoreLocation(parse_uri("s3://bucket/top"), "http://127.0.0.1:9000", ("AWS_ACCESS_KEY_ID",))
DEBUG = """Generic S3 error: Error performing GET http://host/bucket in 3ms - Server returned

Debug source:
Generic {
    store: "S3",
    source: RetryError(
        RetryErrorImpl {
            method: GET,
            inner: Status {
                status: STATUS,
                body: Some("BODY"),
            },
        },
    ),
}"""


def obstore_error(kind, status=0, code=""):
    body = f"<Error><Code>{code}</Code></Error>" if code else ""
    return kind(
        DEBUG.replace("STATUS", str(status)).replace("BODY", body) if status else "no status here: 404"
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (obstore_error(obstore.GenericError), Unavailable),
        (obstore_error(obstore.GenericError, 503), Unavailable),
        (obstore_error(obstore.GenericError, 503, "SlowDown"), Throttled),
        (obstore_error(obstore.GenericError, 429), Throttled),
        (obstore_error(obstore.GenericError, 404, "NoSuchBucket"), BucketNotFound),
        (obstore_error(obstore.GenericError, 404, "ContainerNotFound"), BucketNotFound),
        (obstore_error(obstore.GenericError, 416), Corrupt),
        (obstore_error(obstore.GenericError, 301, "PermanentRedirect"), InvalidSpec),
        (obstore_error(obstore.GenericError, 400, "ExpiredToken"), Unavailable),
        (obstore_error(obstore.PermissionDeniedError, 403, "ExpiredToken"), Unavailable),
        (obstore_error(obstore.GenericError, 400, "ExpiredTokenException"), Unavailable),
        (obstore_error(obstore.GenericError, 400, "TokenRefreshRequired"), Unavailable),
        (obstore_error(obstore.PermissionDeniedError, 403, "RequestExpired"), Unavailable),
        (obstore_error(obstore.PermissionDeniedError, 403, "AuthenticationFailed"), AccessDenied),
        (obstore_error(obstore.GenericError, 403, "RequestTimeTooSkewed"), AccessDenied),
        (obstore_error(obstore.GenericError, 418), InvalidSpec),
        (obstore_error(obstore.AlreadyExistsError, 409, "BlobArchived"), InvalidSpec),
        (obstore_error(obstore.AlreadyExistsError, 409, "BlobBeingRehydrated"), InvalidSpec),
        (obstore_error(obstore.GenericError, 400, "KMS.ThrottlingException"), Throttled),
        (obstore_error(obstore.PermissionDeniedError, 403), AccessDenied),
        (obstore_error(obstore.UnauthenticatedError, 401), AccessDenied),
        (obstore_error(obstore.AlreadyExistsError, 412, "PreconditionFailed"), AlreadyExists),
        (obstore_error(obstore.AlreadyExistsError, 409, "ConditionalRequestConflict"), Unavailable),
        (obstore_error(obstore.PreconditionError, 412), Changed),
        (obstore_error(obstore.InvalidPathError), InvalidSpec),
        (obstore_error(obstore.NotSupportedError), InvalidSpec),
        (obstore_error(FileNotFoundError, 404, "NoSuchKey"), NotFound),
        (FileNotFoundError(errno.ENOENT, "x"), NotFound),
        (IsADirectoryError("x"), NotFound),
        (FileExistsError("x"), AlreadyExists),
        (PermissionError("x"), AccessDenied),
        (OSError(errno.EROFS, "x"), AccessDenied),
        (OSError(errno.ENOSPC, "x"), Unavailable),
        (OSError(errno.ENAMETOOLONG, "x"), InvalidSpec),
        (OSError(errno.EIO, "x"), Unavailable),
        (OSError(errno.ESTALE, "x"), Unavailable),
        (OSError("says nothing"), Unavailable),
        (ConnectionResetError("x"), Unavailable),
        (TimeoutError("x"), Unavailable),
        (FTP_PERMANENT("550 No such file"), NotFound),
        (FTP_PERMANENT("530 Login incorrect"), AccessDenied),
        (FTP_TEMPORARY("421 Too many connections"), Unavailable),
        (ValueError("x"), InvalidSpec),
        (RuntimeError("x"), Unavailable),
        (NotImplementedError("x"), InvalidSpec),
    ],
)
def test_exceptions_become_the_error_tree(error, expected):
    found = translate(error, PLACE, "a")
    assert type(found) is expected
    assert found.problems[0].remedy


class ClientError(Exception):
    """The shape of botocore's errors."""

    def __init__(self, code, status):
        super().__init__("text")
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


class HttpError(Exception):
    """The shape of gcsfs's and aiohttp's errors."""

    def __init__(self, **attributes):
        super().__init__("text")
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ClientError("NoSuchBucket", 404), BucketNotFound),
        (ClientError("SlowDown", 503), Throttled),
        (ClientError("Strange", 403), AccessDenied),
        (HttpError(code=429), Throttled),
        (HttpError(code="403"), AccessDenied),
        (HttpError(status=404), NotFound),
        (HttpError(status_code=503), Unavailable),
        (HttpError(status_code=404, error_code="ContainerNotFound"), BucketNotFound),
        (HttpError(code=7), Unavailable),
    ],
)
def test_attributes_are_read_if_the_type_says_nothing(error, expected):
    assert type(translate(error, PLACE)) is expected


def test_the_cause_is_read_if_the_outer_exception_says_nothing():
    outer = PermissionError("wrapped")
    outer.__cause__ = ClientError("InvalidAccessKeyId", 403)
    found = translate(outer, PLACE, "a")
    assert "rejects the credentials" in str(found)
    circle = OSError(errno.EIO, "x")
    circle.__cause__ = OSError(errno.EIO, "y")
    circle.__cause__.__cause__ = circle
    assert type(translate(circle, PLACE)) is Unavailable


def test_missing_credentials_name_what_was_read_and_what_to_set():
    found = store_error("credentials", PLACE)
    assert type(found) is CredentialsMissing
    assert "read: AWS_ACCESS_KEY_ID" in str(found)
    assert "AWS_SECRET_ACCESS_KEY" in str(found)


def test_expired_credentials_are_temporary_and_reported_as_expired():
    text = str(translate(obstore_error(obstore.GenericError, 400, "ExpiredToken"), PLACE))
    assert "the credentials for s3://bucket/top have expired" in text
    assert "read: AWS_ACCESS_KEY_ID" in text
    assert "Renew the Secret" in text


def test_an_error_names_uri_endpoint_and_evidence():
    text = str(translate(obstore_error(obstore.GenericError, 503, "SlowDown"), PLACE, "a b"))
    assert "s3://bucket/top/a b" in text
    assert "endpoint http://127.0.0.1:9000" in text
    assert "HTTP 503 SlowDown" in text


def test_our_errors_and_bugs_pass_unchanged():
    mine = NotFound.of("x")
    assert translate(mine, PLACE) is mine
    with pytest.raises(NotFound) as caught, translating(PLACE):
        raise mine
    assert caught.value is mine
    for defect in (TypeError, AttributeError, KeyError, AssertionError):
        with pytest.raises(defect), translating(PLACE):
            raise defect("x")


def test_translated_errors_are_chained():
    with pytest.raises(Unavailable) as caught, translating(PLACE, "a"):
        raise ConnectionResetError("x")
    assert isinstance(caught.value.__cause__, ConnectionResetError)


HTTP = """Generic S3 error: Error performing HEAD http://host/bucket in 3ms - HTTP error

Debug source:
Generic {
    source: RetryError(
        RetryErrorImpl {
            inner: Http(
                HttpError {
                    kind: KIND,
                    source: reqwest::Error {
                        kind: Request,
                        source: DETAIL,
                    },
                },
            ),
        },
    ),
}"""
REFUSED = """Os {
    code: 111,
    kind: ConnectionRefused,
    message: "Connection refused",
}"""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            obstore.GenericError(HTTP.replace("KIND", "Connect").replace("DETAIL", REFUSED)),
            "connection refused",
        ),
        (
            obstore.GenericError(HTTP.replace("KIND", "Timeout").replace("DETAIL", "TimedOut")),
            "no response in time",
        ),
        (obstore.GenericError(HTTP.replace("KIND", "Connect")), "no connection"),
        (obstore.GenericError(HTTP.replace("KIND", "Novel")), "GenericError"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "connection refused"),
        (TimeoutError(), "no response in time"),
    ],
)
def test_the_reason_for_no_response_is_reported(error, reason):
    found = translate(error, PLACE, "a")
    assert type(found) is Unavailable
    assert found.problems[0].measured == f"{reason}; endpoint http://127.0.0.1:9000"


@pytest.mark.parametrize("key", ["d/../x", r"d/q\"uo\\te//x", r"d/a\nb"])
def test_the_key_that_ends_a_listing_is_reported(key):
    """As obstore 0.9 prints it; the key's defect does not matter."""
    debug = f'InvalidPath {{\n    source: X {{\n        path: "{key}",'
    text = f"Path contained empty segment\n\nDebug source:\n{debug}"
    (problem,) = translate(obstore.InvalidPathError(text), PLACE).problems
    assert problem.what.startswith("a key below ")
    assert f'the key "{key}"' in problem.measured
    assert "?engine=fsspec" in problem.remedy


@pytest.mark.parametrize(
    ("uri", "plain", "private"),
    [
        ("s3://b/x", "http", "https"),
        ("https://h/x", "http", "https"),
        ("webdavs://h/x", "webdav", "webdavs"),
        ("swebhdfs://h/x", "webhdfs", "swebhdfs"),
        ("ftps://h/x", "ftp", "ftps"),
    ],
)
def test_the_remedy_for_tls_names_the_schemes_of_the_uri(uri, plain, private):
    for kind, words in (
        ("no tls", f"Write {plain}:// instead of {private}://"),
        ("tls port", f"Write {private}:// instead of {plain}://"),
    ):
        (problem,) = store_error(kind, StoreLocation(parse_uri(uri))).problems
        assert problem.remedy.startswith(words)
