"""`warmup_cache`, `clear_cache` and `remove_from_cache` add a step to a pipeline."""

from __future__ import annotations

from typing import Any

from podferry.components.data.node_cache import component
from podferry.components.step import check_constants, uncached

NAMESPACE = "podferry"


def warmup_cache(
    cache: Any, *, namespace: Any = NAMESPACE, timeout: Any = 3600, image: str | None = None
) -> Any:
    """A task that starts the holders of a cache if they were stopped, and waits until each has its dataset.

    Args:
        cache: Name of the cache. Every argument but `image` may be a channel.
        namespace: Where its holders run.
        timeout: Whole seconds to wait; then the step fails.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        The task. It has no outputs: use `.after`.

    Raises:
        InvalidSpec: Every constant that is invalid.
    """
    seconds = int(timeout) if isinstance(timeout, float) else timeout
    return _step("warmup", cache, namespace, image, timeout=seconds)


def clear_cache(
    cache: Any,
    *,
    namespace: Any = NAMESPACE,
    node: Any = "",
    empty: Any = False,
    force: Any = False,
    image: str | None = None,
) -> Any:
    """A task that has the holders of a cache drop what they have, and fetch it again.

    Args:
        cache: Name of the cache. Every argument but `image` may be a channel.
        namespace: Where its holders run.
        node: Only the holder on this node; empty for all.
        empty: The holders stop, and keep nothing until `warmup_cache`.
        force: Also while pods read from the cache.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        The task. It has no outputs: use `.after`.

    Raises:
        InvalidSpec: Every constant that is invalid.
    """
    return _step("clear", cache, namespace, image, node=node, empty=empty, force=force)


def remove_from_cache(  # noqa: PLR0913 - keywords, one per setting
    cache: Any,
    paths: Any,
    *,
    namespace: Any = NAMESPACE,
    force: Any = False,
    secret: Any = None,
    endpoint: Any = "",
    region: Any = "",
    image: str | None = None,
) -> Any:
    """A task that removes files from the source of a cache. Paths with nothing are no error.

    Args:
        cache: Name of the cache. Every argument but `image` may be a channel.
        paths: Files and directories, relative to the source: a list, or a text with one a line.
        namespace: Where its holders run.
        force: Also while pods read from the cache.
        secret: Name of a Secret with the credentials; None for the pod's identity.
        endpoint: URL of the source's store, unless it is the vendor's.
        region: Region of the source's store.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        The task. It has no outputs: use `.after`.

    Raises:
        InvalidSpec: Every constant that is invalid.
    """
    lines = "\n".join(map(str, paths)) if isinstance(paths, list | tuple) else paths
    place = {"endpoint": endpoint, "region": region}
    return _step("rmr", cache, namespace, image, secret, paths=lines, force=force, **place)


def _step(verb: str, cache: Any, namespace: Any, image: str | None, secret: Any = None, **inputs: Any) -> Any:
    check_constants(cache=cache, namespace=namespace, image=image, secret=secret, **inputs)
    task = component.cache_verb(verb=verb, cache=cache, namespace=namespace, **inputs)
    return uncached(task, secret, image=image)
