"""The bodies of error responses, also within longer and escaped texts."""

import pytest

from podferry.storage.errors.response_body import ResponseBody, read_response_body


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ResponseBody()),
        ("<html>404</html>", ResponseBody()),
        ("<Error><Code>NoSuchKey</Code><Message>m</Message></Error>", ResponseBody("NoSuchKey")),
        ('body: Some("<Code>A</Code><Region>eu-west-1</Region>")', ResponseBody("A", "eu-west-1")),
        (
            "<Code>KMS.DisabledException</Code><Message>k is disabled.</Message>",
            ResponseBody("KMS.DisabledException", "", "k is disabled."),
        ),
        (
            "<Code>AccessDenied</Code><Message>to perform: kms:GenerateDataKey on</Message>",
            ResponseBody("AccessDenied", "", "kms:GenerateDataKey"),
        ),
        (
            "<Code>InvalidObjectState</Code><StorageClass>GLACIER</StorageClass>",
            ResponseBody("InvalidObjectState", "", "storage class GLACIER"),
        ),
        (
            "<Code>InternalError</Code><StorageClass>STANDARD</StorageClass>",
            ResponseBody("InternalError"),
        ),
        ("<Code>not/a code</Code>", ResponseBody()),
    ],
)
def test_what_a_body_says(text, expected):
    assert read_response_body(text) == expected
