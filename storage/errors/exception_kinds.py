"""What an exception means by its type, its error number or a reply: the kind, if possible by name alone."""

from __future__ import annotations

import errno

from obstore import exceptions as obstore

KIND_BY_OBSTORE_TYPE: dict[type[BaseException], str] = {
    FileNotFoundError: "missing",
    obstore.AlreadyExistsError: "exists",
    obstore.PreconditionError: "changed",
    obstore.PermissionDeniedError: "denied",
    obstore.UnauthenticatedError: "denied",
    obstore.InvalidPathError: "name",
    obstore.NotSupportedError: "unsupported",
    obstore.UnknownConfigurationKeyError: "unsupported",
}

KIND_BY_OS_TYPE: dict[type[OSError], str] = {
    FileNotFoundError: "missing",
    NotADirectoryError: "missing",
    IsADirectoryError: "missing",
    FileExistsError: "exists",
    PermissionError: "denied",
}
"""Libraries also raise these without an error number."""

KIND_BY_ERRNO = {
    errno.EROFS: "denied",
    **dict.fromkeys((errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ELOOP), "name"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "full"),
    **dict.fromkeys((errno.EOPNOTSUPP, errno.ENOSYS), "unsupported"),
}
"""Every other number is `unreachable`: timeouts, resets, stale handles, input and output errors."""

KIND_BY_CLASS_NAME = {
    "botocore.exceptions.NoCredentialsError": "credentials",
    "botocore.exceptions.PartialCredentialsError": "credentials",
    "botocore.exceptions.ParamValidationError": "name",
    "google.auth.exceptions.DefaultCredentialsError": "credentials",
    "google.auth.exceptions.RefreshError": "denied",
    "azure.core.exceptions.ResourceNotFoundError": "missing",
    "azure.core.exceptions.ResourceExistsError": "exists",
    "azure.core.exceptions.ResourceModifiedError": "changed",
    "azure.core.exceptions.ClientAuthenticationError": "denied",
    "aiohttp.client_exceptions.ClientHttpProxyError": "proxy",
    "aiohttp.client_exceptions.RedirectClientError": "redirected",
    "aiohttp.client_exceptions.TooManyRedirects": "redirected",
    "aiohttp.http_exceptions.HttpProcessingError": "unreachable",
    "aiohttp.http_exceptions.PayloadEncodingError": "cut",
    "podferry.storage.ftp.refused_writes.NameRefused": "name",
    "podferry.storage.oss.response.NotFromOss": "not oss",
    "podferry.storage.s3.response.RedirectedAway": "s3 redirected",
    "podferry.storage.s3.response.NotFromS3": "not s3",
    "podferry.storage.s3.listing_page.UnreadableListing": "unreadable",
    "podferry.storage.gcs.client.NotFromGcs": "not gcs",
    "podferry.storage.azure.response.NotFromAzure": "not azure",
    "podferry.storage.gcs.listing.UnreadableGcsListing": "unreadable",
}
"""By the qualified name of a base class of the exception, so that no package has to be installed."""

KIND_BY_FTP_REPLY = {
    **dict.fromkeys(("530", "532"), "denied"),
    **dict.fromkeys(("452", "552"), "full"),
    "550": "missing",
    "553": "name",
}
"""RFC 959, section 4.2.2: the three digits that begin a reply; 550 does not only mean a missing file."""
