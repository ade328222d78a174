"""`sync` adds the step to a pipeline."""

from __future__ import annotations

from typing import Any

from podferry.components.data.sync import component
from podferry.components.step import check_constants, globs_text, mount_own_secrets, uncached


def sync(  # noqa: PLR0913 - keywords, one per setting
    source: Any,
    destination: Any,
    *,
    secret: Any = None,
    source_secret: Any = None,
    destination_secret: Any = None,
    include: Any = "",
    exclude: Any = "",
    delete: Any = False,
    unpack: Any = False,
    size_only: Any = False,
    endpoint: Any = "",
    region: Any = "",
    source_endpoint: Any = "",
    source_region: Any = "",
    destination_endpoint: Any = "",
    destination_region: Any = "",
    image: str | None = None,
) -> Any:
    """A task that makes a destination equal to a dataset, and moves only what differs; KFP's cache is off.

    Pass its `reference` to the training: it is that of the destination, and stays the same until a file
    changes.

    Args:
        source: A prefix, an object, a manifest or a web directory, frozen or not. Every argument but `image`
            may be a channel.
        destination: A prefix.
        secret: Name of a Secret with the credentials; None for the pod's identity.
        source_secret: Name of one for the source alone.
        destination_secret: Name of one for the destination alone.
        include: Globs of the files to sync: a text or a list.
        exclude: Globs of the files to leave out, likewise.
        delete: Remove files at the destination that the source no longer has.
        unpack: Write the members of archives instead of the archives.
        size_only: Files of equal size count as equal.
        endpoint: URL of the object store, for both places.
        region: Region of the object store, likewise.
        source_endpoint: URL of the source's store, if it is another one.
        source_region: Its region.
        destination_endpoint: URL of the destination's store, if it is another one.
        destination_region: Its region.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        The task, with the outputs `reference`, `moved`, `bytes`, `kept` and `removed`.

    Raises:
        InvalidSpec: Every constant that is invalid.
    """
    texts = {"source": source, "destination": destination, "endpoint": endpoint, "region": region}
    texts |= {"include": globs_text(include), "exclude": globs_text(exclude)}
    texts |= {"source_endpoint": source_endpoint, "source_region": source_region}
    texts |= {"destination_endpoint": destination_endpoint, "destination_region": destination_region}
    secrets = {"source_secret": source_secret, "destination_secret": destination_secret}
    flags = {"delete": delete, "size_only": size_only}
    check_constants(secret=secret, image=image, **texts, **flags, **secrets)
    task = component.sync(unpack=unpack, **texts, **flags)
    mount_own_secrets(task, **secrets)
    return uncached(task, secret, image=image)
