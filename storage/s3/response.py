"""What an S3 service responds, and responses that are not its own."""

from __future__ import annotations

from podferry.storage.errors.response_body import read_response_body
from podferry.storage.http.foreign_response import excerpt, is_foreign_page
from podferry.storage.http.store_client import StoreResponse, StoreResponseError

BUCKET_REGION_HEADER = "x-amz-bucket-region"


class S3ResponseError(StoreResponseError):
    """An error response, read by `vendor_fields`; `status` is 0 if it came with a status of success."""

    def __init__(self, response: StoreResponse) -> None:
        body = read_response_body(response.text)
        super().__init__(f"{response.status} {body.code}")
        self.status = 0 if response.status < 300 else response.status
        self.error_code, self.detail = body.code, body.detail
        self.region = body.region or response.headers.get(BUCKET_REGION_HEADER, "")


class NotFromS3(S3ResponseError):
    """A response that no S3 service sends: something else listens at the endpoint, or is between."""

    by_service = False

    def __init__(self, response: StoreResponse) -> None:
        super().__init__(response)
        self.status, self.detail = response.status, excerpt(response)


class RedirectedAway(NotFromS3):
    """A redirection to another page, such as a login, or one of a service that is maintained."""


def checked(response: StoreResponse) -> StoreResponse:
    """The response if it reports success.

    S3 sends some errors with a status of success, and no redirection to elsewhere without a code or a region.

    Raises:
        S3ResponseError: It does not.
    """
    if 200 <= response.status < 300 and "<Error>" not in response.text:
        return response
    error = S3ResponseError(response)
    leads_elsewhere = 300 <= response.status < 400 and "Location" in response.headers
    if is_foreign_page(response):
        raise NotFromS3(response)
    raise RedirectedAway(response) if leads_elsewhere and not (error.error_code or error.region) else error
