"""The package `podferry` itself; the other top-level folders are its subpackages."""

from importlib import import_module


def __getattr__(name: str) -> str:
    if name == "__version__":  # imported on request: reading metadata takes as long as a fast verb
        version: str = import_module("importlib.metadata").version("podferry")
        return version
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
