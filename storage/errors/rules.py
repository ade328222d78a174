"""Error, sentence and remedy for each kind of failure: decides whether a retry can help."""

from __future__ import annotations

from typing import NamedTuple

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    BucketNotFound,
    Changed,
    Corrupt,
    FerryError,
    InvalidSpec,
    NotFound,
    Throttled,
    Unavailable,
)


class Rule(NamedTuple):
    """The error's type, what is wrong with `{}`, and the remedy."""

    error: type[FerryError]
    sentence: str
    remedy: str


CONNECTION_ERRORS = {
    "untrusted": Rule(
        InvalidSpec,
        "the certificate of the server for {} is not trusted",
        "Set AWS_CA_BUNDLE or SSL_CERT_FILE to a file with its CA certificate, or store that as `ca` in the "
        "Secret",
    ),
    "authority": Rule(
        InvalidSpec,
        "the server for {} presents the certificate of an authority as its own",
        "Give the server a certificate that its CA has issued (CA:FALSE)",
    ),
    "wrong name": Rule(
        InvalidSpec,
        "the certificate of the server for {} is for another name",
        "Use a name of the certificate in the address, or issue one for this name",
    ),
    "no tls": Rule(
        InvalidSpec,
        "the server for {} does not use TLS",
        "Write {plain}:// instead of {private}:// in the address, or another port",
    ),
    "tls port": Rule(
        InvalidSpec,
        "the server for {} requires TLS",
        "Write {private}:// instead of {plain}:// in the address, or another port",
    ),
    "not s3": Rule(
        InvalidSpec,
        "the endpoint of {} does not respond as an S3 service",
        "Check the endpoint and its port: a console, a web page or a proxy may respond there",
    ),
    "not gcs": Rule(
        InvalidSpec,
        "the endpoint of {} does not respond as Google Cloud Storage",
        "Check the endpoint and its port: a web page or a proxy may respond there; for s3:// services write "
        "s3://",
    ),
    "not azure": Rule(
        InvalidSpec,
        "the endpoint of {} does not respond as Azure Blob Storage",
        "Check the endpoint and its port: a web page or a proxy may respond there",
    ),
    "not ftp": Rule(
        InvalidSpec,
        "the server for {} does not respond as an FTP server",
        "Check the host and its port: 21, for ftps:// 990",
    ),
    "no passive mode": Rule(
        InvalidSpec,
        "the server for {} refuses passive mode, which listings and transfers need",
        "Have it enabled at the server (vsftpd: pasv_enable=YES), or use sftp://",
    ),
    "not http": Rule(
        InvalidSpec,
        "the server for {} does not respond as a web server",
        "Check the host and its port: another service responds there",
    ),
    "not oss": Rule(
        InvalidSpec,
        "the endpoint of {} does not respond as OSS",
        "Check the endpoint and its port: a web page or a proxy may respond there; for s3:// services write "
        "s3://",
    ),
    "proxy credentials": Rule(
        InvalidSpec,
        "the proxy requires a password to connect to the server for {}",
        "Set HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT, or add the server to NO_PROXY",
    ),
}
"""Misconfigured, and permanent, if the store never responded; an outage if it did."""

SCHEMES_WITH_TLS = {"webdav": "webdavs", "webhdfs": "swebhdfs", "ftp": "ftps"}
"""Schemes whose name says whether there is TLS, where others have an endpoint: for `{plain}`, `{private}`."""

ERRORS = {
    "missing": Rule(NotFound, "there is no object {}", "Check the name"),
    "bucket": Rule(BucketNotFound, "there is no bucket {}", "Check the name of the bucket, and the endpoint"),
    "exists": Rule(AlreadyExists, "{} already exists", "Choose another name, or inspect the existing object"),
    "changed": Rule(Changed, "{} has changed since it was listed", "List it again"),
    "locked": Rule(
        Unavailable, "another program has locked {}", "Close it there; requests are retried until then"
    ),
    "throttled": Rule(Throttled, "the store limits the rate of requests for {}", "Try again later"),
    "unreachable": Rule(
        Unavailable,
        "the store does not respond for {}",
        "Check the endpoint's address and the network, or try again later",
    ),
    "certificate time": Rule(
        Unavailable,  # the server's owner renews it
        "the certificate of the server for {} is not valid at this time",
        "Renew the server's certificate, or set the clock of this machine; requests are retried until then",
    ),
    "role": Rule(
        Unavailable,
        "the service that gives credentials for {} does not respond",
        "Check its address and the network, or set the credentials themselves",
    ),
    "proxy": Rule(
        Unavailable,  # it may only be unable to reach the server
        "the proxy does not connect to the server for {}",
        "Allow it in the proxy, correct HTTPS_PROXY, or add the server to NO_PROXY",
    ),
    "unreadable": Rule(
        Unavailable,  # it may have been cut on its way
        "the store's listing of {} cannot be read",
        "Check that the endpoint is the store's, and what is between; requests are retried until then",
    ),
    "other response": Rule(
        Unavailable,  # such as the page of a proxy while the store is maintained
        "the response for {} is not what was requested",
        "Check the endpoint, and caches or proxies before it; requests are retried until then",
    ),
    "damaged": Rule(Unavailable, "the data of {} was damaged in transit", "Try again"),
    "cut": Rule(Unavailable, "the response for {} ends too early", "Try again, or check the server's log"),
    "gone": Rule(NotFound, "{} was removed", "Ask its owner for the new address"),
    "redirected": Rule(
        Unavailable,  # perhaps only while the server is maintained
        "the server redirects from {} to another page",
        "Open it in a browser: that page may ask for a login, or say that the server is in maintenance; if "
        "the data has moved, use its new address",
    ),
    "s3 redirected": Rule(
        Unavailable,  # as above
        "the endpoint of {} redirects to another page instead of responding as an S3 service",
        "Check the endpoint and its port: a console or a login may respond there; requests are retried until "
        "then",
    ),
    "moved": Rule(InvalidSpec, "{} has moved", "Use its new address"),
    "login": Rule(
        AccessDenied,
        "the server asks for a login instead of showing {}",
        "Have it show the data without one, or copy the data to another store",
    ),
    "page": Rule(
        Unavailable,  # such as that of a server that is maintained
        "the server responds with a web page instead of the file {}",
        "Open it in a browser: the page says why",
    ),
    "object page": Rule(
        InvalidSpec,
        "the endpoint responds with a web page instead of the object {}",
        "Check the endpoint and the name: a console or a web application may respond so for any name. A page "
        "that is meant needs a name that ends with .html or .htm",
    ),
    "no page": Rule(
        Unavailable,
        "the server responds without an index page for the directory {}",
        "Check the server, for example in a browser",
    ),
    "no file": Rule(
        Unavailable,
        "the server responds without the file {}",
        "Check the server, for example in a browser",
    ),
    "no html": Rule(
        InvalidSpec,
        "the server has no HTML index page for the directory {}",
        "Have it list its files as HTML (nginx: `autoindex_format html`, or `json`)",
    ),
    "no index": Rule(
        InvalidSpec,
        "the page of the directory {} does not list it",
        "Have the server list its files (nginx: `autoindex on`); remove an index.html that hides them",
    ),
    "pages": Rule(
        InvalidSpec,
        "the index of the directory {} has several pages",
        "Have the server list all files of a directory on one page",
    ),
    "endless": Rule(Corrupt, "the index page of {} has no end", "Name a directory further down"),
    "region": Rule(
        InvalidSpec,
        "the bucket of {} is not in the configured region",
        "Set the bucket's region, or its endpoint",
    ),
    "archived": Rule(
        InvalidSpec,
        "{} is archived and cannot be read",
        "Restore it to an online storage class first, or exclude it",
    ),
    "kms": Rule(
        InvalidSpec,
        "the KMS key of {} cannot be used",
        "Enable the key, or encrypt the object with another one",
    ),
    "other range": Rule(
        Corrupt,
        "the server does not respond with the requested bytes of {}",
        "Check how the server, and caches or proxies before it, support ranges; or turn ranges off",
    ),
    "range": Rule(Corrupt, "{} ends before the requested bytes", "List it again"),
    "name": Rule(
        InvalidSpec,
        "the store does not accept the name {}",
        "Rename or exclude the file; keys need non-empty parts without control characters",
    ),
    "key": Rule(
        Corrupt,
        "a key below {} is not a valid file name, and the listing stops there",
        "Rename it at its source, or skip it with `exclude` and ?engine=fsspec",
    ),
    "full": Rule(Unavailable, "there is no space left to write {}", "Free space at the destination"),
    "unwritten": Rule(
        Unavailable,
        "the server fails to write {}",
        "Free space at the server, or check its disk; requests are retried until then",
    ),
    "unsupported": Rule(
        InvalidSpec,
        "the store does not support this operation on {}",
        "Use another engine or another store",
    ),
    "invalid": Rule(
        InvalidSpec,
        "the store rejects the request for {} as malformed",
        "Check the endpoint, the region and the name",
    ),
}
