"""What the engine of the fake store declares."""

from podferry.storage.engine import Engine, Scheme

MEMORY = Engine(
    name="memory",
    store="podferry.storage.memory.store:open_memory",
    schemes=(
        Scheme(
            names=("memory",),
            tested_on="a fake store in the process",
            exclusive_create=True,
            resumed_uploads=True,
            server_copy=True,
        ),
    ),
)
