"""`dataset` adds the step to a pipeline."""

from __future__ import annotations

from typing import Any

from podferry.components.data.dataset import component
from podferry.components.step import check_constants, globs_text, uncached


def dataset(  # noqa: PLR0913 - keywords, one per setting
    uri: Any,
    *,
    secret: Any = None,
    fits: Any = "",
    include: Any = "",
    exclude: Any = "",
    endpoint: Any = "",
    region: Any = "",
    image: str | None = None,
) -> Any:
    """A task that freezes a dataset, in every run: KFP's cache is off.

    Pass its `reference` to the training as a parameter: training then runs again if the data has changed, and
    may be answered from KFP's cache if it has not.

    Args:
        uri: A prefix, an object or a reference. Every argument but `image` may be a channel.
        secret: Name of a Secret with the credentials; None for the pod's identity.
        fits: The volume that it must fit into, such as 64Gi. If it does not, the step fails with the numbers,
            before a training pod exists.
        include: Globs of the files to include: a text or a list.
        exclude: Globs of the files to exclude, likewise.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        The task, with the outputs `reference`, `files`, `size` and the artifact `data`.

    Raises:
        InvalidSpec: Every constant that is invalid.
    """
    include, exclude = globs_text(include), globs_text(exclude)
    access = {"secret": secret, "endpoint": endpoint, "region": region, "image": image}
    check_constants(uri=uri, fits=fits, include=include, exclude=exclude, **access)
    task = component.dataset(
        uri=uri, endpoint=endpoint, region=region, fits=fits, include=include, exclude=exclude
    )
    return uncached(task, secret, image=image)
