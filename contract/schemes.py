"""The schemes of podferry's own engines, for those who must not load the engines; a test compares them."""

STORE_SCHEMES = (
    *("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "bos", "oss", "hf", "pvc"),
    *("http", "https", "webdav", "webdavs", "ftp", "ftps", "sftp", "ssh", "smb"),
    *("hdfs", "viewfs", "webhdfs", "swebhdfs"),
)
"""Of stores; not the local files and the memory of a process."""
OTHER_NAMES = {
    **dict.fromkeys(("minio", "s3n", "ceph", "r2", "cos", "cosn", "obs", "tos", "ks3"), "s3"),
    "scp": "sftp",
    "azure": "az",
    "wasb": "abfs",
    "wasbs": "abfss",
    "dav": "webdav",
    "davs": "webdavs",
}
"""Names that other programs have for a service, and the scheme here."""
ALIASES = {
    "s3a": "s3",
    "gcs": "gs",
    "abfs": "az",
    "abfss": "az",
    "ssh": "sftp",
    "https": "http",
    "webdavs": "webdav",
    "ftps": "ftp",
    "swebhdfs": "webhdfs",
    "viewfs": "hdfs",
}
"""Schemes of one service, or of one server with and without TLS, by the first of them."""
WEB_SCHEMES = frozenset({"http", "https", "webdav", "webdavs"})
"""Their servers read a path as that of a URL."""
WITHOUT_HOST = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "bos", "oss", "hf", "pvc", "image", "file", "memory"}
)
"""Schemes whose URIs have a bucket, a container or another name before the path. Others may have a host."""
WITHOUT_USER = ("http", "https", "webdav", "webdavs", "hdfs", "viewfs", "webhdfs", "swebhdfs")
"""Services whose engines take the user from the Secret alone."""
WITH_USER = ("sftp", "ftp", "smb")
"""Services whose URIs may name a user, who sees the same files."""

HUB_KINDS = ("datasets", "models", "spaces")
"""Of the Hugging Face Hub's repositories: what `hf://` has in the place of a bucket, unless it is a model."""


def remedy_for_other_name(scheme: str) -> str:
    """What to write instead of another program's name for a service; empty if it is none."""
    meant = OTHER_NAMES.get(scheme)
    if meant == "s3":
        return "Write s3://BUCKET/PATH, and set the endpoint of the service's S3 interface"
    return f"Did you mean {meant!r}?" if meant else ""


def parts_of_root(scheme: str, bucket: str) -> int:
    """How many parts of the path belong to the place itself: an SMB share, the name of a repository."""
    if scheme == "hf":
        return 2 if bucket in HUB_KINDS else 1
    return 1 if scheme == "smb" else 0


def canonical_place(scheme: str, bucket: str) -> tuple[str, str]:
    """The same pair for all spellings of a place that URIs show to be the same."""
    service = ALIASES.get(scheme, scheme)
    return service, bucket.rpartition("@")[2].lower() if service in WITH_USER else bucket
