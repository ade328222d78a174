"""Amazon's CRCs, without the rest of its library.

Importing `_awscrt` collects entropy for TLS and reads the system's certificates: 35 ms, four times those of
what is done here. Its functions for checksums need neither. They are called in its shared object, whose
module is not initialised, as CPython would call them: with a module, which they ignore, and a tuple. The
import is what is left if they do not give the values that are known. Source: awslabs/aws-crt-python,
`source/checksums.h`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

CHECKED = b"123456789"
KNOWN = {"crc32": 0xCBF43926, "crc32c": 0xE3069283, "crc64nvme": 0xAE8B14860A799888}
"""Of these bytes. Source: "Catalogue of parametrised CRC algorithms", the values named `check`."""
HALF = 4
"""Bytes of the first of two ranges of them."""


@cache
def load_aws_crcs() -> Any:
    """What has the functions of `awscrt.checksums` for these kinds, under their names."""
    if "_awscrt" not in sys.modules:
        try:
            return _without_initialising()
        except (ImportError, OSError, AttributeError, TypeError, ValueError):
            pass
    return importlib.import_module("awscrt.checksums")


def _without_initialising() -> SimpleNamespace:
    """Raises what says that it is impossible."""
    import ctypes  # noqa: PLC0415 - 3 ms, for these alone
    from importlib.util import find_spec  # noqa: PLC0415

    found = find_spec("_awscrt")
    if found is None or found.origin is None:
        raise ImportError("awscrt is not installed")
    library = ctypes.PyDLL(found.origin)

    def function(name: str) -> Callable[..., int]:
        call = library[f"aws_py_checksums_{name}"]
        call.argtypes, call.restype = [ctypes.py_object, ctypes.py_object], ctypes.py_object
        return lambda *arguments: call(None, arguments)

    made = SimpleNamespace()
    for kind in KNOWN:
        setattr(made, kind, function(kind))
        setattr(made, f"combine_{kind}", function(f"{kind}_combine"))
        _check(kind, made)
    return made


def _check(kind: str, made: SimpleNamespace) -> None:
    compute, combine = getattr(made, kind), getattr(made, f"combine_{kind}")
    first, second = compute(CHECKED[:HALF], 0), compute(CHECKED[HALF:], 0)
    found = {compute(CHECKED, 0), compute(CHECKED[HALF:], first), combine(first, second, len(CHECKED) - HALF)}
    if found != {KNOWN[kind]}:
        raise ValueError(f"{kind} of {CHECKED!r} is {found}")
