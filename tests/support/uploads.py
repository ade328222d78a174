"""What an uploader has sent."""

from __future__ import annotations


def sent(rig, start=0):
    """Names of the data that was sent, each part with its number."""
    calls = [(call, name) for call, name in rig.content.calls[start:] if "/.podferry/" not in name]
    return [name.removeprefix("run/") for call, name in calls if call in ("write", "send")]
