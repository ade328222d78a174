"""Runs the scenarios of a test module in parallel; each test checks the result of one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from tests.e2e.manifests import Object
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site

T = TypeVar("T")
Scenario = Callable[[Namespace], T]


class Scenarios(Generic[T]):
    """Running scenarios.

    Attributes:
        namespace: Where they run.
    """

    def __init__(self, namespace: Namespace, futures: Mapping[str, Future[T]]) -> None:
        self.namespace, self._futures = namespace, futures

    def __getitem__(self, name: str) -> T:
        """The result of a scenario; waits for it, and raises what it raised."""
        return self._futures[name].result()


@contextlib.contextmanager
def start_scenarios(
    site: Site, scenarios: Mapping[str, Scenario[T]], *objects: Object
) -> Iterator[Scenarios[T]]:
    """Start all scenarios in one namespace that contains `objects`."""
    with site.namespace() as namespace, ThreadPoolExecutor(len(scenarios)) as pool:
        if objects:
            namespace.start(*objects)
        yield Scenarios(namespace, {name: pool.submit(run, namespace) for name, run in scenarios.items()})
