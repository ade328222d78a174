"""Runs the step `create_cache`: `podferry cache create --apply`, then `warmup`, as the step's account."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from podferry.components.data.node_cache.runner import run_command
from podferry.components.parsers import refuse_invalid


@dataclass(frozen=True, slots=True)
class NewCache:
    """What a cache is to be, as the options of `podferry cache create`. An empty text is not given.

    Attributes:
        cache, namespace: Name of the cache, and where its holders run.
        source, size: The dataset, and space for its files.
        nodes, selector: How many nodes keep it, and which labels they have, one a word.
        readers: Globs over namespaces, one a word.
        disk: On the nodes' disks.
        shared: Directory of the nodes for readers without a copy.
        max_rate, refresh: How holders use the source.
        holder_image: Of the holders.
        secret, endpoint, region: Access to the source; the Secret is in the holders' namespace.
        wait, timeout: Whether to wait until each holder has the dataset, and for how many seconds.
    """

    cache: str
    source: str
    size: str = ""
    nodes: int = 1
    selector: str = ""
    namespace: str = "podferry"
    readers: str = ""
    disk: bool = False
    shared: str = ""
    max_rate: str = ""
    refresh: str = ""
    holder_image: str = ""
    secret: str = ""
    endpoint: str = ""
    region: str = ""
    wait: bool = True
    timeout: int = 3600


OPTIONS = {
    **{name: f"--{name}" for name in ("source", "size", "shared", "refresh", "secret", "endpoint", "region")},
    "max_rate": "--max-rate",
    "holder_image": "--image",
}
"""Of one value."""
REPEATED = {"selector": "--selector", "readers": "--readers"}


def run_create(step: NewCache) -> None:
    """Run both commands; their output is the log of the step.

    Raises:
        InvalidSpec: Every input that is wrong.
        SystemExit: A command has failed; with its exit code.
    """
    texts = ("cache", "namespace", *OPTIONS, *REPEATED)
    refuse_invalid(**{name: getattr(step, name) for name in texts})
    place = f"--namespace={step.namespace}"
    run_command(["cache", "create", step.cache, place, *_options(step), "--apply"])
    if step.wait:
        run_command(["cache", "warmup", step.cache, place, f"--timeout={step.timeout}"])


def _options(step: NewCache) -> Iterator[str]:
    for name, option in OPTIONS.items():
        if value := getattr(step, name):
            yield f"{option}={value}"
    for name, option in REPEATED.items():
        yield from (f"{option}={word}" for word in getattr(step, name).split())
    yield f"--nodes={step.nodes}"
    if step.disk:
        yield "--disk"
