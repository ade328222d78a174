"""A worker that sends a checkpoint's data and then waits before its commit until a test kills it.

Run it as a module with `DIRECTORY inotify|polling`; the rig's directories are below DIRECTORY.
"""

import asyncio
import sys
from pathlib import Path

from podferry.contract.uri import parse_uri
from podferry.storage.local.store import LocalStore
from podferry.storage.store import Body, WriteMode
from tests.support.checkpoint_rig import Rig


class Stuck(LocalStore):
    """Never gets to a commit."""

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        if "/commits/" in name:
            sys.stdout.write("at the commit\n")
            sys.stdout.flush()
            await asyncio.Event().wait()
        await super().write(name, body, mode)


async def main(base: Path, *, polling: bool) -> None:
    store = Stuck(parse_uri(f"file://{base}/remote"))
    async with Rig(base, polling=polling).running(store):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), polling=sys.argv[2] == "polling"))
