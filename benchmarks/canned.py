"""The listing that nginx serves: what S3 would say of each file, made before; `listing.lua` cuts pages."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from podferry.contract.manifest import Entry


def nginx_tag(modified: int, size: int) -> str:
    """The ETag that nginx gives a static file, so that a request's If-Match with the listed one holds.

    Source: `ngx_http_set_etag` of nginx, "%xT-%xO" in quotation marks.
    """
    return f'"{modified:x}-{size:x}"'


def contents(entry: Entry, modified: int) -> str:
    """An object's element in an answer of ListObjectsV2."""
    when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(modified))
    tag = escape(entry.tag, {'"': "&quot;"})
    return (
        f"<Contents><Key>{escape(entry.name)}</Key><LastModified>{when}</LastModified><ETag>{tag}</ETag>"
        f"<Size>{entry.size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
    )


def files_below(root: Path) -> Iterator[tuple[Entry, int]]:
    """Every file below `root` as an object, and when it was modified, seconds since the epoch."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            found = path.stat()
            modified = int(found.st_mtime)
            key = path.relative_to(root).as_posix()
            yield Entry(key, found.st_size, nginx_tag(modified, found.st_size)), modified


def lines(objects: Iterable[tuple[Entry, int]]) -> Iterator[str]:
    """One line an object, by the bytes of their keys as S3 sorts them: key, tab, element."""
    ordered = sorted(objects, key=lambda found: found[0].name.encode())
    return (f"{entry.name}\t{contents(entry, modified)}\n" for entry, modified in ordered)
