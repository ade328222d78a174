"""The functions that add a step of a cache to a pipeline, such as `create_cache`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from podferry.components.data.node_cache import component
from podferry.components.step import check_constants, is_absent, uncached

if TYPE_CHECKING:
    from podferry.contract.errors import Problem

NAMESPACE = "podferry"


def create_cache(  # noqa: PLR0913 - keywords, one per setting
    cache: Any,
    source: Any,
    *,
    size: Any = "",
    nodes: Any = 1,
    selector: Any = "",
    namespace: Any = NAMESPACE,
    readers: Any = "",
    disk: Any = False,
    shared: Any = "",
    max_rate: Any = "",
    refresh: Any = "",
    holder_image: Any = "",
    secret: Any = "",
    endpoint: Any = "",
    region: Any = "",
    wait: Any = True,
    timeout: Any = 3600,
    image: str | None = None,
) -> Any:
    """A task that creates a cache, or changes what differs, and waits until its holders have the dataset.

    Repeated with the same arguments it changes nothing.

    Args:
        cache: Name of the cache. Every argument but `image` may be a channel.
        source: The dataset, frozen or not.
        size: Space for its files, such as 14Gi; empty for that of a frozen reference.
        nodes: How many nodes keep it.
        selector: Labels of these nodes: a mapping, or a text such as "pool=gpu zone=a".
        namespace: Where its holders run.
        readers: Namespaces whose pods may read too, or globs: a list, or a text with blanks between them.
        disk: Keep it on the nodes' disks, not in memory.
        shared: Readers use the files in place, in mounts of this directory of the nodes.
        max_rate: Bytes a second that all holders together take from the source, such as 200Mi.
        refresh: List the source again after this time, such as 10m; empty for when somebody asks for it.
        holder_image: Image of the holders; empty for the default of `podferry cache create`.
        secret: Secret with the source's credentials, in the holders' namespace. The step does not mount it.
        endpoint: URL of the source's store, unless it is the vendor's.
        region: Region of the source's store.
        wait: Wait until each holder has the dataset as it is at its source.
        timeout: Whole seconds to wait; then the step fails.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        The task; its output is the cache's name.

    Raises:
        InvalidSpec: Every constant that is invalid.
    """
    inputs = {
        "cache": cache,
        "source": source,
        "size": size,
        "nodes": nodes,
        "selector": _words(selector),
        "namespace": namespace,
        "readers": _words(readers),
        "disk": disk,
        "shared": shared,
        "max_rate": max_rate,
        "refresh": refresh,
        "holder_image": holder_image,
        "secret": "" if is_absent(secret) else secret,
        "endpoint": endpoint,
        "region": region,
        "wait": wait,
        "timeout": _whole(timeout),
    }
    _check_new(inputs, image)
    return uncached(component.create_cache(**inputs), image=image)


def _check_new(inputs: Mapping[str, Any], image: str | None) -> None:
    # Imported on call: see check_constants.
    from podferry.components.constants import constant_problems  # noqa: PLC0415
    from podferry.contract.errors import InvalidSpec  # noqa: PLC0415

    problems = constant_problems({**inputs, "image": image})
    InvalidSpec.raise_any([*problems, *_size_problems(inputs["source"], inputs["size"])])


def _size_problems(source: Any, size: Any) -> Iterator[Problem]:
    """That no size is known: holders reserve space for the dataset."""
    # Imported on call: see check_constants.
    from podferry.components.training.gpu_train.input_refs import known_text  # noqa: PLC0415
    from podferry.contract.dataset_reference import parse_reference  # noqa: PLC0415
    from podferry.contract.errors import InvalidSpec, Problem  # noqa: PLC0415

    known = known_text(source) if isinstance(source, str) else None
    if not is_absent(size) or not known:
        return
    with suppress(InvalidSpec):  # which `constant_problems` has named
        if parse_reference(known).bytes is None:
            yield Problem("size: that of the dataset is unknown", known, "Write one, or freeze the dataset")


def _words(values: Any) -> Any:
    """A text with one word for each member of a list or of labels; any other value unchanged."""
    if isinstance(values, Mapping):
        values = [f"{key}={value}" for key, value in values.items()]
    return " ".join(map(str, values)) if isinstance(values, list | tuple) else values


def _whole(seconds: Any) -> Any:
    return int(seconds) if isinstance(seconds, float) else seconds


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
    return _step("warmup", cache, namespace, image, timeout=_whole(timeout))


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


def delete_cache(
    cache: Any, *, namespace: Any = NAMESPACE, force: Any = False, image: str | None = None
) -> Any:
    """A task that removes a cache: its holders, and what they have. A cache that is gone is no error.

    Args:
        cache: Name of the cache. Every argument but `image` may be a channel.
        namespace: Where its holders run.
        force: Also while pods read from the cache.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        The task. It has no outputs: use `.after`.

    Raises:
        InvalidSpec: Every constant that is invalid.
    """
    return _step("delete", cache, namespace, image, force=force)


def _step(verb: str, cache: Any, namespace: Any, image: str | None, secret: Any = None, **inputs: Any) -> Any:
    check_constants(cache=cache, namespace=namespace, image=image, secret=secret, **inputs)
    task = component.cache_verb(verb=verb, cache=cache, namespace=namespace, **inputs)
    return uncached(task, secret, image=image)
