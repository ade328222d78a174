"""Has the holders of a cache list its source again, after a verb has changed that."""

from __future__ import annotations

from podferry.cli.cache.live_caches import LiveCaches
from podferry.contract.errors import FerryError
from podferry.sidecar.runtime.messages import print_message


def ask_holders(caches: LiveCaches, namespace: str, name: str) -> None:
    """Ask them, or say why that is not possible: the source has changed in any case."""
    try:
        caches.refresh(caches.report(namespace, name))
    except FerryError as error:
        what = "the holders have not been asked to take what has changed"
        print_message(f"{what}: {error} Run podferry cache warmup {name}.", "yellow")
