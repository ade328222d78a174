"""Vendors' exceptions become the error tree of `podferry.contract.errors`.

No other package knows vendors' error codes and exception types.
"""
