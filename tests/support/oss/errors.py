"""Errors as OSS sends them. Source: "Error responses" of Alibaba's OSS API reference."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from xml.sax.saxutils import escape

MESSAGES = {
    "AccessDenied": (403, "You have no right to access this object."),
    "EntityTooSmall": (400, "Your proposed upload smaller than the minimum allowed size."),
    "FileAlreadyExists": (409, "The object you specified already exists and can not be overwritten."),
    "InvalidAccessKeyId": (403, "The OSS Access Key Id you provided does not exist in our records."),
    "InvalidArgument": (400, "Invalid Argument."),
    "InvalidBucketName": (400, "The specified bucket is not valid."),
    "InvalidDigest": (400, "The Content-MD5 you specified was invalid."),
    "InvalidObjectName": (400, "The specified object is not valid."),
    "InvalidObjectState": (403, "The operation is not valid for the object's state"),
    "InvalidPart": (400, "One or more of the specified parts could not be found or have another ETag."),
    "InvalidPartOrder": (400, "The list of parts was not in ascending order."),
    "InvalidRange": (416, "The requested range cannot be satisfied"),
    "MalformedXML": (400, "The XML you provided was not well-formed."),
    "MethodNotAllowed": (405, "The specified method is not allowed against this resource."),
    "MissingContentMD5": (400, "Missing Some Required Arguments."),
    "NoSuchBucket": (404, "The specified bucket does not exist."),
    "NoSuchKey": (404, "The specified key does not exist."),
    "NoSuchUpload": (404, "The specified upload does not exist."),
    "NotImplemented": (501, "This imitation does not know the operation."),
    "PreconditionFailed": (412, "At least one of the pre-conditions you specified did not hold."),
    "QpsLimitExceeded": (503, "Please reduce your request rate."),
    "RequestTimeTooSkewed": (
        403,
        "The difference between the request time and the current time is too large.",
    ),
    "SecurityTokenExpired": (403, "The security token you provided has expired."),
    "InvalidSecurityToken": (403, "The security token you provided is invalid."),
    "SignatureDoesNotMatch": (
        403,
        "The request signature we calculated does not match the one you provided.",
    ),
}
ELSEWHERE = (
    "The bucket you are attempting to access must be addressed using the specified endpoint. "
    "Please send all future requests to this endpoint."
)
FORBIDDEN_BY_KMS = "This request is forbidden by kms."


class OssError(Exception):
    """An error to send; `more` are further elements of its body."""

    def __init__(self, code: str, message: str = "", **more: str) -> None:
        super().__init__(code)
        self.status, usual = MESSAGES[code]
        self.code, self.message, self.more = code, message or usual, more

    def body(self, host: str) -> bytes:
        """The XML."""
        elements: Mapping[str, str] = {
            "Code": self.code,
            "Message": self.message,
            "RequestId": "5CAC41EE0000000000000000",
            "HostId": host,
            **self.more,
        }
        inner = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in elements.items())
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{inner}</Error>'.encode()

    def header(self, host: str) -> dict[str, str]:
        """Where a response to HEAD has the body."""
        return {"x-oss-err": base64.b64encode(self.body(host)).decode()}
