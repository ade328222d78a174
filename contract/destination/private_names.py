"""Names of podferry's own at a destination; all of them are below one directory."""

PRIVATE = ".podferry"
SYNC_DIR = f"{PRIVATE}/sync"
"""Directory of the records of syncs. Listings of datasets skip it."""


def is_sync_record(name: str) -> bool:
    """Whether an object below a prefix is a record of a sync, which is no part of the dataset there."""
    return name.startswith(f"{SYNC_DIR}/")
