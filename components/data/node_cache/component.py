"""The steps of a cache as a KFP component."""

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
    """Warm a cache up, clear it, or remove files of its source.

    Args:
        verb: warmup, clear or rmr.
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
