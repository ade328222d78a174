"""Options for reaching a cluster."""

from __future__ import annotations

import click

from podferry.cli.options.named_options import Verb, add_options


def cluster_options(verb: Verb) -> Verb:
    """Add --kubeconfig and --context, the arguments of `LiveCluster`."""
    options = (
        click.option("--kubeconfig", metavar="FILE", help="Of the cluster.  [default: $KUBECONFIG]"),
        click.option("--context", metavar="NAME", help="In the kubeconfig.  [default: the current one]"),
    )
    return add_options(verb, options)
