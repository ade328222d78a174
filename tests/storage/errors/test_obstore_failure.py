import pytest

from podferry.storage.errors.obstore_failure import ObstoreFailure, described_failure, foreign_page

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


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ('inner: Status { status: 404, body: Some( "<html>\\r\\n<p>", ), }', "HTTP 404: '<html>\\r\\n<p>'"),
        ('inner: Status { status: 405, body: Some( "<!DOCTYPE html>", ), }', "HTTP 405: '<!DOCTYPE html>'"),
        ('inner: Status { status: 404, body: Some( "", ), }', ""),
        ('inner: Status { status: 404, body: Some( "<?xml ?><Error>", ), }', ""),
        ('inner: Status { status: 502, body: Some( "<html>", ), }', ""),
    ],
)
def test_only_the_page_of_a_web_server_is_foreign(text, page):
    assert foreign_page(text) == page
