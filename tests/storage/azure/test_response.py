import pytest

from podferry.storage.azure.response import AzureResponseError, NotFromAzure, checked
from podferry.storage.http.store_client import StoreResponse


@pytest.mark.parametrize(
    ("headers", "text", "code"),
    [
        ({"x-ms-error-code": "BlobNotFound"}, "", "BlobNotFound"),
        ({}, "<Error><Code>InvalidBlockList</Code></Error>", "InvalidBlockList"),
        ({}, "", ""),
    ],
)
def test_errors_have_the_services_code(headers, text, code):
    with pytest.raises(AzureResponseError) as caught:
        checked(StoreResponse(404, headers, text))
    assert (caught.value.status, caught.value.error_code) == (404, code)


def test_success_passes():
    response = StoreResponse(201, {}, "")
    assert checked(response) is response


@pytest.mark.parametrize(("text", "expected"), [("<html>", NotFromAzure), ("", AzureResponseError)])
def test_a_web_page_is_not_from_azure(text, expected):
    with pytest.raises(AzureResponseError) as caught:
        checked(StoreResponse(405, {"Content-Type": "text/html"}, text))
    assert type(caught.value) is expected
