"""Fixtures of the trainer's tests."""

from tests.support.pod_api_server import api_server

__all__ = ["api_server"]
