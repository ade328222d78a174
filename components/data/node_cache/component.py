"""The steps of a cache as KFP components."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, and imports are inside. Its inputs are flat, so there are many.
# ruff: noqa: PLC0415, PLR0913

from podferry.components.step import step


@step
def cache_verb(
    verb: str,
    cache: str,
    namespace: str = "podferry",
    paths: str = "",
    node: str = "",
    empty: bool = False,
    force: bool = False,
    timeout: int = 3600,
    endpoint: str = "",
    region: str = "",
    run: str = "",
) -> None:
    """Warm a cache up, clear it, remove files of its source, or delete it.

    Args:
        verb: warmup, clear, rmr or delete.
        cache: Name of the cache.
        namespace: Where its holders run.
        paths: Of rmr: files and directories, relative to the source, one a line.
        node: Of clear: only the holder on this node; empty for all.
        empty: Of clear: the holders stop, and keep nothing.
        force: Also while pods read from the cache.
        timeout: Of warmup: seconds to wait.
        endpoint: Of rmr: URL of the source's store.
        region: Of rmr: its region.
        run: Identifier of this run: KFP's cache never answers the step.
    """
    from podferry.components.data.node_cache.runner import CacheVerb, run_verb
    from podferry.components.verdict import verdict

    given = CacheVerb(
        verb,
        cache,
        namespace,
        paths,
        node,
        empty=empty,
        force=force,
        timeout=timeout,
        endpoint=endpoint,
        region=region,
    )
    verdict(run_verb, given)


@step
def create_cache(
    cache: str,
    source: str,
    size: str = "",
    nodes: int = 1,
    selector: str = "",
    namespace: str = "podferry",
    readers: str = "",
    disk: bool = False,
    shared: str = "",
    max_rate: str = "",
    refresh: str = "",
    holder_image: str = "",
    secret: str = "",
    endpoint: str = "",
    region: str = "",
    wait: bool = True,
    timeout: int = 3600,
    run: str = "",
) -> str:
    """Create a cache, or change it, and wait until its holders have the dataset.

    Args:
        cache: Name of the cache.
        source: The dataset.
        size: Space for its files; empty for that of a frozen reference.
        nodes: Nodes that keep it.
        selector: Labels of these nodes, KEY=VALUE with blanks between them.
        namespace: Where its holders run.
        readers: Namespaces whose pods may read too, or globs, with blanks between them.
        disk: Keep it on the nodes' disks, not in memory.
        shared: Directory of the nodes for readers without a copy.
        max_rate: Bytes a second that all holders together take from the source.
        refresh: List the source again after this time.
        holder_image: Image of the holders.
        secret: Secret with the source's credentials, in the holders' namespace.
        endpoint: URL of the source's store.
        region: Its region.
        wait: Wait until each holder has the dataset.
        timeout: Seconds to wait.
        run: Identifier of this run: KFP's cache never answers the step.

    Returns:
        The cache's name.
    """
    from podferry.components.data.node_cache.new_cache import NewCache, run_create
    from podferry.components.verdict import verdict

    given = NewCache(
        cache,
        source,
        size,
        nodes,
        selector,
        namespace,
        readers,
        disk=disk,
        shared=shared,
        max_rate=max_rate,
        refresh=refresh,
        holder_image=holder_image,
        secret=secret,
        endpoint=endpoint,
        region=region,
        wait=wait,
        timeout=timeout,
    )
    verdict(run_create, given)
    return cache
