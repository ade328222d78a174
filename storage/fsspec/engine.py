"""What the engine of fsspec declares. With `?engine=fsspec` it opens whatever fsspec can."""

from podferry.storage.engine import Engine, Scheme

FSSPEC = Engine(
    name="fsspec",
    store="podferry.storage.fsspec.store:open_fsspec",
    schemes=(
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
