"""What the callbacks share: which checkpoint a save has written, and its mark."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from podferry.contract.errors import FerryError, PermanentError
from podferry.contract.http_api import CHECKPOINTS_VARIABLE
from podferry.trainer.ferry import Ferry
from podferry.trainer.marks import checkpoint_done

log = logging.getLogger("podferry")


class LibraryMissing(PermanentError, ImportError):
    """A callback's library cannot be imported."""


def library_missing(library: str, error: ImportError) -> LibraryMissing:
    """The error for a callback whose library, named as on PyPI, cannot be imported."""
    what = f"podferry's callback for {library} cannot import {library}"
    return LibraryMissing.of(what, str(error), f"Run: pip install {library}")


def mark_saved(saved: str | os.PathLike[str], ferry: Ferry | None = None) -> bool:
    """Mark the checkpoint of which `saved` is a file or directory: all its files are written and closed.

    A failure is a warning: the checkpoint is then judged without a mark, and training continues.

    Args:
        saved: A local path; any other, or one outside the checkpoint directory, is no checkpoint of podferry.
        ferry: The running `with ferry(...)`; None for the agent of `podferry run` or of the pod.

    Returns:
        Whether it is marked.
    """
    name = _checkpoint_of(saved, _directory(ferry))
    if name is None:
        return False
    try:
        if ferry is None:
            return checkpoint_done(name)
        ferry.done(name)
    except FerryError as error:
        log.warning("podferry did not mark the checkpoint %s: %s", name, error)
        return False
    return True


def _directory(ferry: Ferry | None) -> Path | None:
    if ferry is not None:
        return ferry.checkpoints
    path = os.environ.get(CHECKPOINTS_VARIABLE)
    return Path(path) if path else None


def _checkpoint_of(saved: str | os.PathLike[str], directory: Path | None) -> str | None:
    """The name at the top of the checkpoint directory that contains `saved`."""
    path = Path(saved)
    if directory is None or not path.exists():  # this process's node may have written nothing
        return None
    path, directory = path.resolve(), directory.resolve()
    parts = path.relative_to(directory).parts if path.is_relative_to(directory) else ()
    return parts[0] if parts else None
