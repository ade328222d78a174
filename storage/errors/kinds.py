"""Kinds of errors: what happened, by the vendor's code, then the exception's type, then the HTTP status."""

from __future__ import annotations

from podferry.storage.errors.vendor_fields import VendorFields

KIND_BY_CODE = {
    **dict.fromkeys(("NoSuchBucket", "ContainerNotFound", "InvalidBucketName", "AccountNotFound"), "bucket"),
    **dict.fromkeys(("NoSuchKey", "BlobNotFound"), "missing"),
    **dict.fromkeys(("BlobAlreadyExists", "FileAlreadyExists"), "exists"),
    **dict.fromkeys(
        ("AccessDenied", "AllAccessDisabled", "AccountProblem", "AuthorizationPermissionMismatch"), "denied"
    ),
    **dict.fromkeys(
        (
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "InvalidToken",
            "InvalidSecurity",
            "InvalidSecurityToken",
            "AuthenticationFailed",
            "AuthorizationFailure",
            "InvalidAuthenticationInfo",
            "InvalidTokenId",  # MinIO
            "InvalidClientTokenId",  # the service of roles
            "XAdminUserNotFound",  # versitygw: 404 for an access key that it does not know
        ),
        "wrong credentials",
    ),
    **dict.fromkeys(
        (
            "ExpiredToken",
            "ExpiredTokenException",
            "TokenRefreshRequired",
            "RequestExpired",
            "SecurityTokenExpired",
        ),
        "expired",
    ),
    "RequestTimeTooSkewed": "clock",
    **dict.fromkeys(
        (
            "SlowDown",
            "TooManyRequests",
            "ThrottlingException",
            "RequestLimitExceeded",
            "ServerBusy",
            "QpsLimitExceeded",
            "TotalQpsLimitExceeded",
            "TrafficRateLimitExceeded",
            "DownloadTrafficRateLimitExceeded",
            "UploadTrafficRateLimitExceeded",
        ),
        "throttled",
    ),
    **dict.fromkeys(
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"), "region"
    ),
    "InvalidRange": "range",
    **dict.fromkeys(("InvalidObjectState", "BlobArchived", "BlobBeingRehydrated"), "archived"),
    **dict.fromkeys(
        ("KMS.DisabledException", "KMS.NotFoundException", "KMS.KMSInvalidStateException"), "kms"
    ),
    "KMS.AccessDeniedException": "kms denied",
    "KMS.ThrottlingException": "throttled",
    **dict.fromkeys(
        (
            "ConditionalRequestConflict",  # S3: another conditional write is under way; obstore: 409, exists
            "OperationAborted",
            "RequestTimeout",
            "InternalError",
            "ServiceUnavailable",
            "OperationTimedOut",
        ),
        "unreachable",
    ),
    "QuotaExceeded": "full",
    "InvalidObjectName": "name",
    "NotImplemented": "unsupported",
    **dict.fromkeys(
        (
            "BadDigest",
            "InvalidDigest",
            "Md5Mismatch",  # Azure
            "IncompleteBody",
            "XAmzContentChecksumMismatch",
            "XAmzContentSHA256Mismatch",
            "XAmzContentSha256Mismatch",
        ),
        "damaged",
    ),
}
"""Sources: "Error responses" of Amazon's S3 API reference, "Blob service error codes" of Azure Storage,
"Error responses" of Alibaba's OSS API reference."""

KIND_BY_STATUS = {
    301: "region",
    307: "region",
    401: "denied",
    403: "denied",
    404: "missing",
    407: "proxy credentials",
    408: "unreachable",
    410: "gone",
    412: "changed",
    416: "range",
    423: "locked",
    429: "throttled",
    501: "unsupported",
    507: "full",
}


def error_kind(fields: VendorFields) -> str:
    """What happened, in a word or two; `unreachable` if the exception does not say."""
    if fields.code == "AccessDenied" and fields.detail.startswith("kms:"):
        return "kms denied"
    if fields.kind == "proxy" and fields.status == 407:
        return "proxy credentials"
    by_status = KIND_BY_STATUS.get(fields.status, "")
    if not by_status and 400 <= fields.status < 500:
        by_status = "invalid"
    return KIND_BY_CODE.get(fields.code) or fields.kind or by_status or "unreachable"
