"""Parses Kubernetes quantities and durations exactly, and formats them for people.

Source of the grammar: Kubernetes API conventions, "Resource quantities": a decimal number with a binary
(Ki, Mi, Gi, Ti, Pi, Ei) or decimal suffix (m, k, M, G, T, P, E) or exponent.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from podferry.contract.errors import InvalidSpec
from podferry.contract.lazy_pattern import lazy_pattern

BINARY_SUFFIXES = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
DECIMAL_SUFFIXES = {letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)}
FACTORS = {"": Decimal(1), "m": Decimal("0.001"), **BINARY_SUFFIXES, **DECIMAL_SUFFIXES}
QUANTITY = lazy_pattern(
    r"(?P<number>[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?)(?P<suffix>[KMGTPE]i|[mkMGTPE]?)"
)
MAX_BYTES = 2**63 - 1
"""Bytes: the largest integer that a Kubernetes quantity holds."""
MAX_TIMEOUT = 10**9
"""Seconds, 31 years: timers take them."""
DURATION = lazy_pattern(r"(?:(?P<h>\d{1,6})h)?(?:(?P<m>\d{1,6})m)?(?:(?P<s>\d{1,9})s?)?")


def parse_quantity(text: str) -> Decimal:
    """The exact value of a Kubernetes quantity such as `14Gi`, `500m` or `1e3`.

    Raises:
        InvalidSpec: The text is not a quantity.
    """
    match = QUANTITY.fullmatch(text.strip())
    if match is None:
        remedy = "Write a number with a suffix such as Mi or Gi: 14Gi"
        raise InvalidSpec.of("not a quantity", repr(text), remedy)
    return Decimal(match["number"]) * FACTORS[match["suffix"]]


def parse_bytes(text: str) -> int:
    """A quantity as whole bytes above zero, rounded up as Kubernetes does.

    Raises:
        InvalidSpec: Not a quantity, not above zero, or above `MAX_BYTES`.
    """
    value = parse_quantity(text)
    if value <= 0:
        raise InvalidSpec.of("the size must be above zero", repr(text), "Write a size such as 14Gi")
    if value > MAX_BYTES:
        what = "the size exceeds the largest Kubernetes quantity"
        raise InvalidSpec.of(what, repr(text), "Write a smaller size")
    return int(value.to_integral_value(ROUND_CEILING))


def format_bytes(count: int) -> str:
    """Bytes for people, in binary units: `512 B`, `1.5 KiB`, `13.2 GiB`."""
    if abs(count) < 1024:
        return f"{count} B"
    power = 1
    while power < 5 and abs(count) / 1024**power >= 1023.95:
        power += 1
    return f"{count / 1024**power:.1f} {'KMGTP'[power - 1]}iB"


def exact_quantity(count: int) -> str:
    """Bytes as an exact Kubernetes quantity, in MiB if possible."""
    whole, rest = divmod(count, int(BINARY_SUFFIXES["Mi"]))
    return str(count) if rest else f"{whole}Mi"


def quantity_at_least(count: int) -> str:
    """The shortest round Kubernetes quantity of at least `count` bytes, as a remedy suggests it."""
    for suffix in ("Gi", "Mi"):
        unit = int(BINARY_SUFFIXES[suffix])
        if count >= unit * 4:
            return f"{-(-count // unit)}{suffix}"
    return f"{-(-count // 1024)}Ki"


def parse_seconds(text: str) -> int:
    """A duration such as `90`, `90s`, `10m` or `1h30m`, in whole seconds above zero.

    Raises:
        InvalidSpec: Not a duration, or zero.
    """
    match = DURATION.fullmatch(text.strip())
    parts = match.groupdict(default="0") if match else {}
    seconds = int(parts.get("h", 0)) * 3600 + int(parts.get("m", 0)) * 60 + int(parts.get("s", 0))
    if seconds == 0:
        remedy = "Write seconds or a duration such as 10m"
        raise InvalidSpec.of("not a duration above zero", repr(text), remedy)
    return seconds


def parse_timeout(text: str) -> float:
    """Seconds to wait, such as `600` or `0.5`.

    Raises:
        InvalidSpec: Not a number, below zero, or above `MAX_TIMEOUT`.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= MAX_TIMEOUT:  # not for nan either
        remedy = f"Write a number from 0 to {MAX_TIMEOUT}, such as 600"
        raise InvalidSpec.of("not a number of seconds", repr(text), remedy)
    return seconds


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `1,797 files`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
