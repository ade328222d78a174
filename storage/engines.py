"""The engines by scheme: podferry's own, then those of installed packages."""

from __future__ import annotations

from functools import cache

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.engine import Engine, Scheme
from podferry.storage.fsspec.engine import FSSPEC
from podferry.storage.ftp.engine import FTP
from podferry.storage.hdfs.engine import HDFS
from podferry.storage.huggingface.engine import HUGGINGFACE
from podferry.storage.local.engine import LOCAL
from podferry.storage.memory.engine import MEMORY
from podferry.storage.obstore.engine import OBSTORE
from podferry.storage.oss.engine import OSS
from podferry.storage.sftp.engine import SFTP
from podferry.storage.smb.engine import SMB
from podferry.storage.web.engine import WEB
from podferry.storage.webdav.engine import WEBDAV
from podferry.storage.webhdfs.engine import WEBHDFS

BUILT_IN = (OBSTORE, OSS, HDFS, WEBHDFS, LOCAL, MEMORY, SMB, SFTP, FTP, WEB, WEBDAV, HUGGINGFACE, FSSPEC)
"""In the order of choice: the first one that names a scheme opens it. fsspec opens what nobody names."""
ENTRY_POINTS = "podferry.engines"
"""The group of entry points by which a package adds an engine; each is an `Engine`."""


def engine_of(scheme: str) -> Engine | None:
    """The engine that opens a scheme by default, or None if none names it."""
    own = _opening(BUILT_IN, scheme)
    return own or _opening(installed_engines(), scheme)  # packages are searched for unknown schemes only


def engine_for(uri: Uri) -> Engine:
    """The engine that the URI requests, or else the one of its scheme; fsspec opens what is left."""
    if uri.engine:
        return next(engine for engine in BUILT_IN if engine.name == uri.engine)
    return engine_of(uri.scheme) or FSSPEC


def checksums_of(scheme: str) -> str:
    """Those that podferry's own engine for a scheme compares: see `Scheme.checksums`."""
    declared = _declared(scheme)
    return declared.checksums if declared is not None else ""


def has_connection_pool(scheme: str) -> bool:
    """Whether podferry's own connection pool may read a scheme: see `Scheme.connection_pool`; or unknown."""
    declared = _declared(scheme)
    return declared is None or declared.connection_pool


def _declared(scheme: str) -> Scheme | None:
    """What podferry's own engine declares for a scheme."""
    return next((one for engine in BUILT_IN for one in engine.schemes if scheme in one.names), None)


def known_schemes() -> tuple[str, ...]:
    """All schemes that an engine names, sorted."""
    engines = (*BUILT_IN, *installed_engines())
    return tuple(sorted({name for engine in engines for name in engine.scheme_names}))


@cache
def installed_engines() -> tuple[Engine, ...]:
    """Engines of other packages, by the names of their entry points.

    Raises:
        InvalidSpec: An entry point is not an `Engine`.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - 18 ms, for unknown schemes alone

    found = sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name)
    return tuple(_checked(point.name, point.load()) for point in found)


def _checked(name: str, loaded: object) -> Engine:
    if isinstance(loaded, Engine):
        return loaded
    measured = f"{type(loaded).__name__}, entry point {name!r} of the group {ENTRY_POINTS}"
    raise InvalidSpec.of("an installed engine is not an Engine", measured, "Correct or remove its package")


def _opening(engines: tuple[Engine, ...], scheme: str) -> Engine | None:
    return next((engine for engine in engines if scheme in engine.scheme_names), None)
