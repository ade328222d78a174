"""Checks before training starts that the destination creates an object only if it does not exist.

Commits rely on it. A store that cannot do it would otherwise show that only when the first one is due.
"""

from __future__ import annotations

from podferry.contract.errors import AlreadyExists, InvalidSpec, Refused
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.store import Body, WriteMode

REMEDY = (
    "Update the service, or choose another destination: two agents could replace each other's commits here"
)


async def create_checked(store: LineageStore, name: str, body: Body) -> bool:
    """Create an object; returns False if it exists, and then changes nothing.

    A store that creates atomically is asked twice: the second time it has to refuse. One that does not
    (`Store.exclusive_create`) needs no test: commits to it are read back.

    Raises:
        Refused: The store does not support conditional creation, or ignores the condition.
        FerryError: The store's.
    """
    try:
        await store.write(name, body, WriteMode.CREATE)
        if not store.destination.exclusive_create:
            return True
    except AlreadyExists:
        return False
    except InvalidSpec as error:
        answer = error.problems[0].measured
        # No service has refused the condition: a directory cannot be made, a certificate is not trusted.
        if not answer or isinstance(error.__cause__, OSError):
            raise
        what = f"the store of {store.uri} cannot create an object only if it does not exist"
        raise Refused.of(what, answer, REMEDY) from error
    try:
        await store.write(name, body, WriteMode.CREATE)
    except AlreadyExists:
        return True
    what = f"the store of {store.uri} replaces an object that it should only create"
    raise Refused.of(what, f"{name} was created twice", REMEDY)
