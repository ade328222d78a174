"""Error responses of Azure Storage."""

from __future__ import annotations

from podferry.storage.errors.response_body import read_response_body
from podferry.storage.http.foreign_response import excerpt, is_foreign_page
from podferry.storage.http.store_client import StoreResponse, StoreResponseError


class AzureResponseError(StoreResponseError):
    """An error response, read by `podferry.storage.errors.vendor_fields`."""

    def __init__(self, response: StoreResponse) -> None:
        code = response.headers.get("x-ms-error-code", "") or read_response_body(response.text).code
        super().__init__(f"{response.status} {code}")
        self.status, self.error_code = response.status, code


class NotFromAzure(AzureResponseError):
    """A web server's page: the service and its emulators have errors of their own."""

    by_service = False

    def __init__(self, response: StoreResponse) -> None:
        super().__init__(response)
        self.detail = excerpt(response)


def checked(response: StoreResponse) -> StoreResponse:
    """The response if it reports success.

    Raises:
        AzureResponseError: It does not.
    """
    if 200 <= response.status < 300:
        return response
    raise NotFromAzure(response) if is_foreign_page(response) else AzureResponseError(response)
