"""Regular expressions that are compiled at their first use: a short command uses few of the hundred."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    """Has the attributes of a `re.Pattern`, each after its first use without a detour."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self.pattern, self._flags), name)  # which keeps what it has compiled
        setattr(self, name, found)
        return found


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, later; only methods and attributes of the result may be used."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))
