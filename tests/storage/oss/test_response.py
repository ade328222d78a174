import base64

import pytest

from podferry.storage.oss.response import NotFromOss, OssResponse, OssResponseError, checked

ELSEWHERE = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code><Message>The bucket you are '
    b"attempting to access must be addressed using the specified endpoint.</Message>"
    b"<Endpoint>oss-cn-beijing.aliyuncs.com</Endpoint></Error>"
)
OWN = {"x-oss-request-id": "5C"}


def response(status, body=b"", **headers):
    return OssResponse(status, headers, bytearray(body))


def test_successes_pass_and_contents_are_not_read():
    for document in (True, False):
        assert checked(response(200, b"<ListBucketResult/>"), document=document)
    assert checked(response(206, b"<Error>"), document=False).body == b"<Error>"
    with pytest.raises(OssResponseError):
        checked(response(200, b"<Error><Code>InternalError</Code></Error>"), document=True)


def test_an_error_has_its_code_and_the_endpoint():
    with pytest.raises(OssResponseError) as caught:
        checked(response(403, ELSEWHERE), document=True)
    assert (caught.value.status, caught.value.error_code) == (403, "AccessDenied")
    assert caught.value.endpoint == "oss-cn-beijing.aliyuncs.com"
    assert not caught.value.wrong_region


def test_after_head_the_error_is_in_a_header():
    header = base64.b64encode(b"<Error><Code>NoSuchKey</Code></Error>").decode()
    with pytest.raises(OssResponseError) as caught:
        checked(OssResponse(404, OWN | {"x-oss-err": header}, bytearray()), document=True)
    assert caught.value.error_code == "NoSuchKey"
    broken = OssResponse(404, OWN | {"x-oss-err": "%"}, bytearray())
    assert broken.text == ""


@pytest.mark.parametrize(
    ("code", "message", "found", "wrong_region"),
    [
        ("AccessDenied", "This request is forbidden by kms.", "KMS.AccessDeniedException", False),
        ("InvalidArgument", "Invalid signing region in Authorization header.", "InvalidArgument", True),
        ("InvalidArgument", "Part number must be an integer", "InvalidArgument", False),
    ],
)
def test_messages_tell_problems_with_one_code_apart(code, message, found, wrong_region):
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
    error = OssResponseError(response(403, body))
    assert (error.error_code, error.wrong_region) == (found, wrong_region)


def test_what_has_no_identifier_and_no_code_is_not_from_oss():
    for status in (301, 404):
        with pytest.raises(NotFromOss) as caught:
            checked(response(status, b"<html>", **{"Content-Type": "text/html"}), document=True)
        assert caught.value.detail == "text/html, no x-oss-request-id"
    with pytest.raises(OssResponseError) as caught:
        checked(OssResponse(404, OWN, bytearray()), document=True)
    assert not isinstance(caught.value, NotFromOss)
    with pytest.raises(OssResponseError) as caught:  # an outage of what is between
        checked(response(502, b"<html>"), document=True)
    assert not isinstance(caught.value, NotFromOss)
