"""Error, sentence and remedy for each kind of failure that is about credentials; see `rules` next to it."""

from __future__ import annotations

from podferry.contract.errors import AccessDenied, CredentialsMissing, Unavailable
from podferry.storage.errors.rules import Rule

CREDENTIAL_ERRORS = {
    "denied": Rule(AccessDenied, "the store denies access to {}", "Grant these credentials the permission"),
    "list denied": Rule(
        AccessDenied,
        "these credentials may not list {}",
        "Grant them the permission to list, which the one to read does not include (S3: s3:ListBucket on the "
        "bucket; OSS: oss:ListObjects; Azure: `Storage Blob Data Reader`, or a SAS with the permission l), "
        "or name a single object or a manifest",
    ),
    "kms denied": Rule(
        AccessDenied,
        "these credentials may not use the KMS key of {}",
        "Grant them kms:Decrypt to read and kms:GenerateDataKey to write, in the key's policy too",
    ),
    "wrong credentials": Rule(
        AccessDenied,
        "the store rejects the credentials for {}",
        "Check that they match, belong to this endpoint, and have not expired",
    ),
    "expired": Rule(
        Unavailable,  # something else renews them: then the same call may succeed
        "the credentials for {} have expired",
        "Renew the Secret or AWS_SESSION_TOKEN, or check the service of the role; requests are retried "
        "until then",
    ),
    "clock": Rule(
        AccessDenied,
        "the store rejects the time of the request for {}",
        "Set the clock of this machine: it differs from the store's by more than 15 minutes",
    ),
    "credentials": Rule(CredentialsMissing, "there are no credentials for {}", ""),
    "no role": Rule(
        Unavailable,  # a role may be granted to a pod some seconds after its start
        "the service of the machine or container gives no credentials for {}",
        "",
    ),
}
"""Errors that list the variables that were read; without a remedy, it depends on the vendor."""

NO_CREDENTIALS_REMEDIES = {
    "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment or in the Secret, or "
    "AWS_PROFILE for a profile in ~/.aws; for public data set AWS_SKIP_SIGNATURE=true",
    "bos": "Set BOS_ACCESS_KEY_ID and BOS_SECRET_ACCESS_KEY in the environment or in the Secret; for public "
    "data set BOS_SKIP_SIGNATURE=true",
    "az": "Set AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING in the "
    "environment or in the Secret, or AZURE_USE_MANAGED_IDENTITY=true on a machine with an identity; for "
    "public data set AZURE_SKIP_SIGNATURE=true",
    "oss": "Set OSS_ACCESS_KEY_ID and OSS_ACCESS_KEY_SECRET in the environment or in the Secret, or give the "
    "service account a RAM role (RRSA); for public data set OSS_SKIP_SIGNATURE=true",
    "gs": "Set GOOGLE_APPLICATION_CREDENTIALS in the environment or in the Secret; for public data set "
    "GOOGLE_SKIP_SIGNATURE=true",
    "http": "Set HTTP_USERNAME and HTTP_PASSWORD, or HTTP_BEARER_TOKEN, in the environment or in the Secret, "
    "or add the host to the netrc file",
    "webdav": "Set WEBDAV_USERNAME and WEBDAV_PASSWORD, or WEBDAV_BEARER_TOKEN, in the environment or in the "
    "Secret, or add the host to the netrc file",
    "hf": "Set HF_TOKEN in the environment or in the Secret; a gated repository needs consent, too",
}
OTHER_CREDENTIALS_REMEDY = "Set them in the environment or in the Secret, under the vendor's usual names"
