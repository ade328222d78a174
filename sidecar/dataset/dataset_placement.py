"""Where one dataset is staged, and with which credentials."""

from __future__ import annotations

from pathlib import Path

import msgspec

from podferry.contract.cache_api import Holder
from podferry.contract.location_guards import LocationGuards
from podferry.sidecar.dataset.fit_check import RUN, ArgumentNames


class DatasetPlacement(msgspec.Struct, frozen=True):
    """Where one dataset is staged, and with which credentials.

    Attributes:
        directory: The staging directory.
        ownership: The directory of its ownership record.
        secret: A mounted Secret; None for the environment.
        in_pod: Whether the kubelet enforces the volume's size.
        alone: Whether no other dataset shares its space.
        guards: For endpoints in the Secret, and data that a manifest names; None to allow all.
        holder: Where to look for the files first; None to take them from their source.
        size_limit: Bytes that `--size` allows for the files; None to allow as many as the volume has.
        names: Of the command's arguments, for its remedies.
    """

    directory: Path
    ownership: Path
    secret: Path | None = None
    in_pod: bool = False
    alone: bool = True
    guards: LocationGuards | None = None
    holder: Holder | None = None
    size_limit: int | None = None
    names: ArgumentNames = RUN
