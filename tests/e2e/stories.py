"""What happens to several pods at once: a module's stories run together, each test looks at one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from tests.e2e.manifests import Object
from tests.e2e.site import Site
from tests.e2e.space import Space

T = TypeVar("T")
Story = Callable[[Space], T]


class Told(Generic[T]):
    """Stories that are under way.

    Attributes:
        space: Where they happen.
    """

    def __init__(self, space: Space, futures: Mapping[str, Future[T]]) -> None:
        self.space, self._futures = space, futures

    def __getitem__(self, name: str) -> T:
        """How a story has ended; waits for it, and raises what it raised."""
        return self._futures[name].result()


@contextlib.contextmanager
def told(site: Site, stories: Mapping[str, Story[T]], *objects: Object) -> Iterator[Told[T]]:
    """Start all stories in one namespace, which has some objects from the beginning."""
    with site.namespace() as space, ThreadPoolExecutor(len(stories)) as pool:
        if objects:
            space.start(*objects)
        yield Told(space, {name: pool.submit(story, space) for name, story in stories.items()})
