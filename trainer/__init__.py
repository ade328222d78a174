"""What training code may import."""

from podferry.trainer.ferry import Ferry, NotDurableError, ferry

__all__ = ["Ferry", "NotDurableError", "ferry"]
