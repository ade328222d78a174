"""The Hugging Face Hub: an imitation in a process of its own, and Hugging Face's client."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from sources.row import Served, Source
from tests.support.real_servers import free_port, running


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    program = Path(sysconfig.get_path("scripts"), "hf")
    port = free_port()
    command = [sys.executable, "-m", "tests.support.hub_server", str(files), str(port)]
    with running(command, port, folder / "log", PYTHONPATH=str(Path(__file__).parents[2])):
        environment = {
            "HF_ENDPOINT": f"http://127.0.0.1:{port}",
            "HF_HOME": str(folder / "home"),
            "HF_HUB_DISABLE_XET": "1",
        }

        def peer(name: str, target: Path) -> list[str]:
            words = f"{program} download sets/{name} --repo-type=dataset --local-dir {target}"
            return ["sh", "-c", f"{words} && rm -r {target}/.cache"]

        title = f"an imitation of the Hub, huggingface_hub {version('huggingface_hub')}"
        yield Served(title, "hf://datasets/sets", peer, environment)


SOURCE = Source("hf download", serve)
