"""The cluster by hand: `python -m tests.cluster --help`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.cluster import Cluster, choose
from tests.cluster.layout import Layout
from tests.cluster.process import ClusterError


def up(_: Cluster, arguments: argparse.Namespace) -> None:
    """Start it, or reuse a running one."""
    cluster = Cluster(choose(nodes=arguments.nodes)).up()
    cluster.require_nodes(arguments.nodes)
    inside = " ".join(cluster.backend.inside)
    name = f"PODFERRY_CLUSTER={Layout.of(nodes=arguments.nodes).name} " if arguments.nodes > 1 else ""
    sys.stdout.write(
        f"kubeconfig: {cluster.kubeconfig}\n"
        f"kubectl:    {name}python -m tests.cluster kubectl get pods -A\n"
        f"            or {' '.join(cluster.backend.kubectl)}\n"
        + (f"network:    {inside} COMMAND\n" if inside else "")
    )


def down(cluster: Cluster, _: argparse.Namespace) -> None:
    """Stop it and remove its traces."""
    cluster.down()


def kubectl(cluster: Cluster, words: Sequence[str]) -> None:
    """Become kubectl."""
    command = [*cluster.backend.kubectl, *words]
    os.execvp(command[0], command)  # noqa: S606 - no shell wanted


def build_image(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Build a Dockerfile into the cluster."""
    given = dict(word.partition("=")[::2] for word in arguments.build_arg)
    cluster.build_image(arguments.tag, arguments.dockerfile, arguments.context, given)


def load_image(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Load an archive into the cluster, or the base image."""
    if arguments.archive:
        cluster.load_image(arguments.archive)
    else:
        cluster.load_base_image()


def parser() -> argparse.ArgumentParser:
    """The command line."""
    root = argparse.ArgumentParser(
        prog="python -m tests.cluster", description="A Kubernetes for end-to-end tests."
    )
    verbs = root.add_subparsers(required=True, metavar="COMMAND")
    verb = verbs.add_parser("up", help="start the cluster, or reuse the one that runs")
    verb.add_argument("--nodes", metavar="N", type=int, default=1, help="how many nodes it has; 1 by default")
    verb.set_defaults(act=up)
    verbs.add_parser("down", help="stop it and remove everything that it left").set_defaults(act=down)
    verbs.add_parser("kubectl", help="run kubectl against it, with all that follows", add_help=False)
    verb = verbs.add_parser("build-image", help="build a Dockerfile into it; BASE is the base image")
    verb.add_argument("tag", metavar="TAG", help="localhost/NAME:VERSION")
    verb.add_argument("dockerfile", metavar="DOCKERFILE", type=Path)
    verb.add_argument("context", metavar="CONTEXT", type=Path)
    verb.add_argument("--build-arg", metavar="NAME=VALUE", action="append", default=[])
    verb.set_defaults(act=build_image)
    verb = verbs.add_parser("load-image", help="load a `docker save` archive; without one, the base image")
    verb.add_argument("archive", metavar="TAR", type=Path, nargs="?")
    verb.set_defaults(act=load_image)
    return root


def main(words: list[str]) -> int:
    """Run a command; 1 if it failed, with the reason on standard error."""
    try:
        if words[:1] == ["kubectl"]:  # before argparse, which would swallow a `--` that is kubectl's
            kubectl(Cluster(), words[1:])
        arguments = parser().parse_args(words)
        arguments.act(Cluster(), arguments)
    except ClusterError as error:
        sys.stderr.write(f"cluster: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
