"""What training code may import."""

from podferry.trainer.ferry import DoubtfulError, Ferry, NotDurableError, ferry
from podferry.trainer.marks import checkpoint_done
from podferry.trainer.mode import Mode

__all__ = ["DoubtfulError", "Ferry", "Mode", "NotDurableError", "checkpoint_done", "ferry"]
