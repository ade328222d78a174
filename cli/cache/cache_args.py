"""Arguments that verbs for one cache share."""

from __future__ import annotations

import click

from podferry.cache.manifests.cache_spec import parse_cache_name, parse_rate
from podferry.cli.options.cluster_options import cluster_options
from podferry.cli.options.named_options import Verb, add_options
from podferry.cli.options.param_types import ParsedParam
from podferry.contract.annotation_values import parse_namespace
from podferry.contract.quantity import parse_seconds

NAMESPACE = "podferry"
"""Where `podferry cache create` puts holders unless another one is given."""
IMAGE = "podferry:0.1.0"
"""Of the pods that verbs render."""

NAMESPACE_NAME = ParsedParam("TEXT", parse_namespace)


def source_options(verb: Verb) -> Verb:
    """Add how holders use the source of their dataset."""
    options = (
        click.option(
            "--max-rate",
            metavar="SIZE",
            type=ParsedParam("SIZE", parse_rate),
            help="Bytes a second that all holders together take from the source, such as 200Mi.",
        ),
        click.option(
            "--refresh",
            metavar="DURATION",
            type=ParsedParam("DURATION", parse_seconds),
            help="List the source again after this time, such as 10m.  [default: when somebody asks for it]",
        ),
    )
    return add_options(verb, options)


def cache_args(verb: Verb) -> Verb:
    """Add NAME, --namespace and the options for reaching the cluster."""
    options = (
        click.argument("name", type=ParsedParam("NAME", parse_cache_name)),
        click.option(
            "--namespace",
            "-n",
            type=NAMESPACE_NAME,
            default=NAMESPACE,
            show_default=True,
            help="Where its holders run.",
        ),
        cluster_options,
    )
    return add_options(verb, options)
