"""What the engine of fsspec declares. With `?engine=fsspec` it opens whatever fsspec can."""

from podferry.storage.credentials.web import BASIC_AUTH_KEYS, NETRC, web_variables
from podferry.storage.engine import Engine, Scheme

FSSPEC = Engine(
    name="fsspec",
    store="podferry.storage.fsspec.store:open_fsspec",
    schemes=(
        Scheme(
            names=("http", "https"),
            page="http",
            tested_on="nginx, rclone",
            credentials=(*web_variables("HTTP_"), *BASIC_AUTH_KEYS, NETRC),
            writable=False,
            connection_pool=True,
        ),
        Scheme(
            names=("gs", "gcs"),
            page="gcs",
            tested_on="fake-gcs-server",
            credentials=("GOOGLE_APPLICATION_CREDENTIALS",),
            checksums="CRC32C",
            exclusive_create=True,
            resumed_uploads=True,
            server_copy=True,
            connection_pool=True,
        ),
    ),
)
