"""`prepare` adds the step to a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podferry.components.data.prepare import component
from podferry.components.step import check_constants, mount_own_secrets, uncached


def prepare(  # noqa: PLR0913 - keywords, one per setting
    reference: Any,
    command: Any,
    *,
    to: Any,
    parameters: Mapping[str, Any] | Any = None,
    secret: Any = None,
    source_secret: Any = None,
    destination_secret: Any = None,
    endpoint: Any = "",
    region: Any = "",
    to_endpoint: Any = "",
    to_region: Any = "",
    image: str | None = None,
) -> Any:
    """A task that converts a dataset with a command, once for its content, the parameters and the command.

    If the result is at the destination, the step returns its reference at once. For a conversion in Python,
    use `prepared` in a component of your own.

    Args:
        reference: The dataset; a URI is frozen first. Every argument but `image` may be a channel.
        command: Words of the command. It reads the directory `$PODFERRY_DATASET` and writes files to the
            directory `$PODFERRY_TARGET`; `$PODFERRY_PARAMETERS` is JSON.
        to: URI of the destination, which may be that of many conversions.
        parameters: JSON values on which the result depends.
        secret: Name of a Secret with the credentials; None for the pod's identity.
        source_secret: Name of one for the dataset alone.
        destination_secret: Name of one for the destination alone.
        endpoint: URL of the object store.
        region: Region of the object store.
        to_endpoint: URL of the destination's store, if it is another one.
        to_region: Its region.
        image: Image of the step, with the command and `podferry[kfp]`; None for `PODFERRY_IMAGE` or the
            default.

    Returns:
        The task, with the outputs `reference`, `files` and `converted`.

    Raises:
        InvalidSpec: Every constant that is invalid.
    """
    texts = {
        "reference": reference,
        "to": to,
        "endpoint": endpoint,
        "region": region,
        "to_endpoint": to_endpoint,
        "to_region": to_region,
    }
    secrets = {"source_secret": source_secret, "destination_secret": destination_secret}
    given = {} if parameters is None else parameters
    check_constants(secret=secret, image=image, command=command, parameters=given, **texts, **secrets)
    words = list(command) if isinstance(command, tuple) else command
    task = component.prepare(command=words, parameters=given, **texts)
    mount_own_secrets(task, **secrets)
    return uncached(task, secret, image=image)
