"""What S3 answers, byte for byte, and what a user reads: on a real server, through every client of ours."""

import pytest
from aiohttp import web

from podferry.contract.errors import AccessDenied, InvalidSpec, PermanentError, TemporaryError, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.errors.rules import CONNECTION_ERRORS, ERRORS
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.store_calls import KEYS, PART, listed

XML = '<?xml version="1.0" encoding="UTF-8"?>\n<Error>{}<RequestId>R1</RequestId><HostId>H1</HostId></Error>'
REDIRECT = (
    "<Code>PermanentRedirect</Code><Message>The bucket you are attempting to access must be addressed using "
    "the specified endpoint. Please send all future requests to this endpoint.</Message>"
    "<Endpoint>bucket.s3.eu-west-1.amazonaws.com</Endpoint><Bucket>bucket</Bucket>"
)
MALFORMED = (
    "<Code>AuthorizationHeaderMalformed</Code><Message>The authorization header is malformed; the region "
    "'us-east-1' is wrong; expecting 'eu-west-1'</Message><Region>eu-west-1</Region>"
)
ARCHIVED = (
    "<Code>InvalidObjectState</Code><Message>The operation is not valid for the object's storage class"
    "</Message><StorageClass>DEEP_ARCHIVE</StorageClass>"
)
KMS_DISABLED = (
    "<Code>KMS.DisabledException</Code><Message>arn:aws:kms:us-east-1:111122223333:key/1234abcd is disabled."
    "</Message>"
)
KMS_DENIED = (
    "<Code>AccessDenied</Code><Message>User: arn:aws:iam::111122223333:user/a is not authorized to perform: "
    "kms:Decrypt on resource: arn:aws:kms:us-east-1:111122223333:key/1234abcd because no identity-based "
    "policy allows the kms:Decrypt action</Message>"
)
SKEWED = (
    "<Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the current time "
    "is too large.</Message><RequestTime>20261101T100000Z</RequestTime>"
    "<ServerTime>2026-11-02T10:00:00Z</ServerTime><MaxAllowedSkewMilliseconds>900000"
    "</MaxAllowedSkewMilliseconds>"
)
EXPIRED = "<Code>ExpiredToken</Code><Message>The provided token has expired.</Message><Token-0>x</Token-0>"
ELSEWHERE = {"x-amz-bucket-region": "eu-west-1"}


def answering_with(status, body, headers=None):
    async def answer(request):
        text = "" if request.method == "HEAD" else XML.format(body)
        return web.Response(status=status, text=text, content_type="application/xml", headers=headers)

    return answer


ANSWERS = [
    (
        301,
        REDIRECT,
        ELSEWHERE,
        InvalidSpec,
        ["not in the configured region", "it is in eu-west-1", "--region"],
    ),
    (400, MALFORMED, ELSEWHERE, InvalidSpec, ["it is in eu-west-1", "Set the region eu-west-1"]),
    (403, ARCHIVED, None, InvalidSpec, ["is archived", "storage class DEEP_ARCHIVE", "Restore it"]),
    (400, KMS_DISABLED, None, InvalidSpec, ["KMS key", "key/1234abcd is disabled", "Enable the key"]),
    (403, KMS_DENIED, None, AccessDenied, ["may not use the KMS key", "kms:Decrypt", "in the key's policy"]),
    (403, SKEWED, None, AccessDenied, ["rejects the time", "Set the clock of this machine"]),
    (400, EXPIRED, None, Unavailable, ["have expired", "AWS_SESSION_TOKEN", "read: AWS_ACCESS_KEY_ID"]),
]


@pytest.fixture(params=ANSWERS, ids=lambda param: param[1].partition("</Code>")[0][6:])
async def refused(request, answering, quick):
    """A store whose server gives one answer, and what is expected."""
    status, body, headers, *expected = request.param
    endpoint = await answering(answering_with(status, body, headers))
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), quick)
    yield store, *expected
    await store.close()


@pytest.mark.parametrize("call", ["list", "read", "multipart"])
async def test_what_s3_answers_is_named(refused, call):
    store, error, words = refused
    with pytest.raises(error) as caught:
        await {
            "list": lambda: listed(store),
            "read": lambda: store.read("a"),
            "multipart": lambda: store.multipart.begin("a", PART),
        }[call]()
    assert [word for word in words if word not in str(caught.value)] == []


async def test_a_head_without_a_body_names_the_region_too(answering, quick):
    """S3 answers a HEAD signed for another region with 400 and no body."""
    endpoint = await answering(answering_with(400, "", ELSEWHERE))
    store = open_store(parse_uri("s3://bucket/x"), StoreConfig(endpoint=endpoint, credentials=KEYS), quick)
    with pytest.raises(InvalidSpec, match="it is in eu-west-1"):
        await store.stat("a")


def test_a_misconfigured_connection_is_permanent_and_an_outage_is_not():
    assert all(issubclass(rule.error, PermanentError) for rule in CONNECTION_ERRORS.values())
    for kind in ("unreachable", "proxy", "certificate time", "throttled"):
        assert issubclass(ERRORS[kind].error, TemporaryError)
