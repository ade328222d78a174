"""`python -m demo`, from the repository's root: parses its arguments, runs the demo, reports the result."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from demo.examples.show import EXAMPLES, show
from demo.failure import DemoError
from demo.pages import write_pages
from demo.results import Plan, broken_promises, report
from demo.run import run
from demo.screen import Screen
from podferry.contract.errors import FerryError
from tests.support.isolation import isolate

IMITATED = (
    "the object store is a small S3 server over files on this machine, without a network in between.",
    "the GPU step trains on the CPU: the network is small.",
    "KFP's local runner stands for a cluster: the training step starts its own agent, none is injected.",
)


FEWEST_EPOCHS, FEWEST_IMAGES = 8, 400


def main() -> int:
    """The exit code: 0 where everything is as promised."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build/demo"), help="where the report goes")
    parser.add_argument("--images", type=int, help="how many of the 1,797 digits, 400 or more (all of them)")
    parser.add_argument("--epochs", type=int, default=Plan().epochs, help="8 or more (%(default)s)")
    parser.add_argument("--pipeline", metavar="NAME", help=f"an example instead: {', '.join(EXAMPLES)}")
    given = parser.parse_args()
    if given.epochs < FEWEST_EPOCHS:
        parser.error(f"--epochs {given.epochs}: the demo kills training in the middle; write 8 or more")
    if given.images is not None and given.images < FEWEST_IMAGES:
        parser.error(f"--images {given.images}: too few to learn from; write 400 or more")
    isolate(os.environ)
    screen = Screen()
    if given.pipeline:
        return _show(given.pipeline, given.build / given.pipeline, screen)
    try:
        story = run(Plan(given.images, given.epochs, given.epochs // 2), given.build, screen)
    except (DemoError, FerryError) as error:
        screen.failures([str(error).removesuffix(".")])
        return 1
    except KeyboardInterrupt:
        screen.failures(["interrupted"])
        return 130
    found = report(story)
    screen.step(6, "Report")
    screen.report(found, IMITATED)
    pages = write_pages(story, found, IMITATED, given.build)
    screen.say(f"report: {', '.join(str(page) for page in pages)}")
    broken = broken_promises(story, found)
    screen.failures(broken)
    return 1 if broken else 0


def _show(name: str, build: Path, screen: Screen) -> int:
    """The exit code of an example: 0 if everything is as promised."""
    try:
        broken = show(name, build, screen)
    except (DemoError, FerryError) as error:
        broken = [str(error).removesuffix(".")]
    except KeyboardInterrupt:
        screen.failures(["interrupted"])
        return 130
    screen.failures(broken)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
