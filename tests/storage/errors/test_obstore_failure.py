import pytest

from podferry.storage.errors.obstore_failure import ObstoreFailure, described_failure

DELETED = """Generic S3 error: Delete failed

Debug source:
Generic {
    store: "S3",
    source: DeleteFailed {
        path: "run/a",
        code: "AccessDenied",
        message: "Access Denied.",
    },
}"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DELETED, ObstoreFailure(code="AccessDenied")),
        (DELETED.replace("AccessDenied", "404"), ObstoreFailure(status=404)),
        ("source: RequestError { inner: BareRedirect }", ObstoreFailure("region", 301)),
        ("source: InvalidListResponse {", ObstoreFailure("unreadable", reason="the response is no listing")),
        ("source: UnexpectedRange {", ObstoreFailure("other response", reason="another range")),
        ("inner: Status { status: 403, body: None }", None),
    ],
)
def test_failures_without_the_status_of_an_error(text, expected):
    assert described_failure(text) == expected
