"""The schemes of podferry's own engines, for those who must not load the engines; a test compares them."""

STORE_SCHEMES = (
    *("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "bos", "oss", "hf", "pvc"),
    *("http", "https", "webdav", "webdavs", "ftp", "ftps", "sftp", "ssh", "smb"),
    *("hdfs", "viewfs", "webhdfs", "swebhdfs"),
)
"""Of stores; not the local files and the memory of a process."""
OTHER_NAMES = {
    **dict.fromkeys(("minio", "s3n", "ceph", "r2"), "s3"),
    "azure": "az",
    "wasb": "abfs",
    "wasbs": "abfss",
    "dav": "webdav",
    "davs": "webdavs",
}
"""Names that other programs have for a service, and the scheme here."""
