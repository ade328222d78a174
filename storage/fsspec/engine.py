"""What the engine of fsspec declares. It also opens schemes that no engine names, if fsspec knows them."""

from podferry.storage.engine import Engine, Scheme

SECRET_KEYS = (
    "GOOGLE_APPLICATION_CREDENTIALS_JSON",
    "key.json",
    "service-account.json",
    "service_account.json",
    "credentials.json",
    "user-gcp-sa.json",  # the Secret of Kubeflow
)
"""Keys under which Secrets have the JSON of a service account."""

FSSPEC = Engine(
    name="fsspec",
    store="podferry.storage.fsspec.store:open_fsspec",
    schemes=(
        Scheme(
            names=("gs", "gcs"),
            page="gcs",
            tested_on="fake-gcs-server",
            credentials=("GOOGLE_APPLICATION_CREDENTIALS", *SECRET_KEYS, "GOOGLE_SKIP_SIGNATURE"),
            checksums="CRC32C",
            exclusive_create=True,
            resumed_uploads=True,
            server_copy=True,
            connection_pool=True,
        ),
    ),
)

ON_REQUEST = ("s3", "s3a", "az", "abfs", "abfss", "file", "memory")
"""Schemes of other engines that it opens with `?engine=fsspec`. At others its file systems lose files: ossfs
lists from a cache, that of web servers does not notice an incomplete index, that of HDFS cuts names."""
