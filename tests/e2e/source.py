"""What a test of a source needs to know of its server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """A running server that pods reach.

    Attributes:
        dataset: URI of the files.
        checkpoints: URI of a place that can be written.
        secret: What opens it: the keys of the Secret, and of podferry's environment.
        annotations: More of them, such as the endpoint.
        environment: Of podferry, if its names are not those of the Secret.
    """

    dataset: str
    checkpoints: str
    secret: Mapping[str, str]
    annotations: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
