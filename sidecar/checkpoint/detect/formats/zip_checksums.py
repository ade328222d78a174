"""Whether the members of a zip archive have the checksums that its directory says. Reads all of it."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from podferry.sidecar.checkpoint.detect.formats.zip_directory import starts_like_zip


def has_checksums(path: Path) -> bool | None:
    """Whether each member of a zip archive has its checksum; None: it is no archive, or nobody can know.

    An archive of two saves has the directory of one and members of both. The format check, which reads
    little, takes it for complete. What a program writes without checksums looks the same, such as torch with
    `torch.serialization.set_crc32_options(False)`.
    """
    try:
        with path.open("rb") as file:
            if not starts_like_zip(file):
                return None
            with zipfile.ZipFile(file) as archive:
                return archive.testzip() is None
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error):
        return False
    except (NotImplementedError, RuntimeError):  # another compression, or a password
        return None
