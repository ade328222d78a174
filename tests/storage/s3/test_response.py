"""Which responses are errors, which are not those of S3, and what is shown of them."""

from __future__ import annotations

import pytest

from podferry.storage.http.store_client import StoreResponse
from podferry.storage.s3.response import RedirectedAway, S3ResponseError, checked

ERROR = "<Error><Code>SlowDown</Code></Error>"


def test_success_is_returned() -> None:
    response = StoreResponse(204, {}, "")
    assert checked(response) is response


@pytest.mark.parametrize(("status", "shown"), [(200, 0), (503, 503)])
def test_an_error_may_come_with_a_status_of_success(status: int, shown: int) -> None:
    with pytest.raises(S3ResponseError) as caught:
        checked(StoreResponse(status, {}, ERROR))
    assert (caught.value.status, caught.value.error_code) == (shown, "SlowDown")


@pytest.mark.parametrize("status", [301, 302, 303, 307])
def test_a_redirection_without_code_or_region_is_not_from_s3(status: int) -> None:
    with pytest.raises(RedirectedAway):
        checked(StoreResponse(status, {"Location": "/login"}, "<html>"))
    there = {"Location": "https://bucket.s3.test"}
    own = [
        ({**there, "x-amz-bucket-region": "eu-west-1"}, ""),
        (there, "<Code>TemporaryRedirect</Code>"),
        ({}, ""),
    ]
    for headers, text in own:
        with pytest.raises(S3ResponseError) as caught:
            checked(StoreResponse(status, headers, text))
        assert type(caught.value) is S3ResponseError
