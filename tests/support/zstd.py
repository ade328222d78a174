"""Zstandard, of the standard library from Python 3.14 on."""

try:
    from compression import zstd
except ImportError:
    from backports import zstd

__all__ = ["zstd"]
