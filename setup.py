"""Maps the top-level folders to the namespace package `podferry`.

`podferry` has no `__init__.py` of its own: nothing named `sidecar` or `cli` lands in anybody's
site-packages, only `podferry.sidecar`, `podferry.cli` and so on.
"""

from pathlib import Path

from setuptools import setup

ROOMS = ("contract", "storage", "sidecar", "webhook", "trainer", "components", "cli", "pipelines")
HERE = Path(__file__).parent


def packages() -> dict[str, str]:
    """Every package of the distribution and the folder that holds it."""
    found = {}
    for room in ROOMS:
        for marker in sorted((HERE / room).rglob("__init__.py")):
            folder = marker.parent.relative_to(HERE)
            found["podferry." + ".".join(folder.parts)] = folder.as_posix()
    return found


MAPPED = packages()
setup(packages=list(MAPPED), package_dir=MAPPED)
