"""Those who read a stage's files in place, without requests: what a stage does for them."""

from __future__ import annotations

from podferry.cache.holder.version import Version


class InPlaceReaders:
    """None: whoever reads asks the holder. `podferry.cache.shared_stage.shared_stage` has some."""

    @property
    def readers(self) -> tuple[str, ...]:
        """They, as the holder's status shows them."""
        return ()

    def is_locked(self, number: int) -> bool:
        """Whether somebody reads a version, by its number."""
        return False

    def least_number(self) -> int:
        """The highest number of a version that has readers; 0 without any. Blocks."""
        return 0

    def publish(self, version: Version) -> None:
        """Let them know what is served."""

    def retract(self) -> None:
        """What is in place is about to change: nobody may take it for complete."""

    def has_left(self) -> bool:
        """Whether an earlier holder has left something else, which they may read. Blocks."""
        return False
