from tests.sidecar.dataset.conftest import content

__all__ = ["content"]
