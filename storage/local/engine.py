"""What the engine of local directories declares."""

from podferry.storage.engine import Engine, Scheme

LOCAL = Engine(
    name="local",
    store="podferry.storage.local.store:open_local",
    schemes=(
        Scheme(
            names=("file",),
            tested_on="the file system itself",
            exclusive_create=True,
            resumed_uploads=True,
            server_copy=True,
        ),
    ),
)
