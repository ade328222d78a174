"""What training code may import."""

from podferry.trainer.ferry import DoubtfulError, Ferry, NotDurableError, ferry
from podferry.trainer.marks import checkpoint_done

__all__ = ["DoubtfulError", "Ferry", "NotDurableError", "checkpoint_done", "ferry"]
