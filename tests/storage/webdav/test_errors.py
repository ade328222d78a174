"""Each error has what is wrong, a measured value and a remedy."""

import pytest

from podferry.contract.uri import Uri
from podferry.storage.webdav import errors

URI = Uri("webdav", "h", "d/a")


@pytest.mark.parametrize(
    "error",
    [
        errors.no_webdav(URI, "HTTP 200"),
        errors.no_size(URI),
        errors.elsewhere(URI, "/other"),
        errors.unlisted(URI, 403),
        errors.not_stored(URI, 9, 10),
        errors.not_stored(URI, 0, 10),
        errors.not_written(URI, "HTTP 405 to PUT, 9 bytes"),
        errors.not_allowed(URI, "files", "HTTP 404 to PUT, 9 bytes"),
        errors.removed(URI, "HTTP 409 to PUT, 9 bytes"),
        errors.not_directory(URI),
        errors.not_exclusive(URI, "HTTP 201"),
        errors.changed_name(URI),
    ],
)
def test_it_is_complete(error):
    (problem,) = error.problems
    assert str(URI) in problem.what
    assert problem.measured
    assert problem.remedy
