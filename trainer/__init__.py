"""What training code may import."""

from podferry.trainer.ferry import Ferry, NotDurableError, ferry
from podferry.trainer.marks import checkpoint_done

__all__ = ["Ferry", "NotDurableError", "checkpoint_done", "ferry"]
