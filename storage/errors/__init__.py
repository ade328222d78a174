"""Vendors' exceptions become the error tree of `podferry.contract.errors`.

The only location that knows vendors' error codes and exception types.
"""
