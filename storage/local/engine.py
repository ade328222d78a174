"""What the engine of directories declares: those of this machine, and claims that are mounted in a pod."""

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
        Scheme(
            names=("pvc",),
            page="pvc",
            tested_on="volumes of a node, a JuiceFS mount",
            exclusive_create=True,
            resumed_uploads=True,
            server_copy=True,
        ),
    ),
)
