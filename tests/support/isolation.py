"""An environment that reaches only this machine."""

from __future__ import annotations

from collections.abc import MutableMapping

FOREIGN = ("AWS_", "PODFERRY_")
PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def isolate(environ: MutableMapping[str, str]) -> None:
    """Remove every variable that could send this process or its children to another machine."""
    for name in [n for n in environ if n.startswith(FOREIGN) or n.lower() in PROXIES]:
        del environ[name]
    environ["AWS_EC2_METADATA_DISABLED"] = "true"
