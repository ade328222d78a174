"""The entry of `podferry`. The gate and the supervisor are small and start before the rest is loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["wait"]:
        from podferry.sidecar import gate  # noqa: PLC0415 - loaded for this verb alone

        return gate.main(words[1:])
    if words[:1] == ["agent"] and not {"--worker", "--help"} & set(words):
        from podferry.cli import supervise  # noqa: PLC0415 - loaded for this verb alone

        return supervise.main(words[1:])
    from podferry.cli import verbs  # noqa: PLC0415 - loaded for the other verbs alone

    return verbs.main(words)


if __name__ == "__main__":
    sys.exit(main())
