"""Maps the top-level folders to subpackages of `podferry`, and `top_level` to `podferry` itself.

site-packages gets no top-level `sidecar` or `cli`, only `podferry.sidecar`, `podferry.cli` and so on.
"""

from pathlib import Path

from setuptools import setup

FOLDERS = ("contract", "storage", "sidecar", "webhook", "cache", "trainer", "components", "cli", "pipelines")
HERE = Path(__file__).parent


def packages() -> dict[str, str]:
    """Every package of the distribution and the folder that holds it."""
    found = {"podferry": "top_level"}
    for folder in FOLDERS:
        for marker in sorted((HERE / folder).rglob("__init__.py")):
            path = marker.parent.relative_to(HERE)
            found["podferry." + ".".join(path.parts)] = path.as_posix()
    return found


MAPPED = packages()
setup(packages=list(MAPPED), package_dir=MAPPED)
