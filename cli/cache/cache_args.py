"""Arguments that verbs for one cache share."""

from __future__ import annotations

import click

from podferry.cache.manifests.cache_spec import parse_cache_name
from podferry.cli.options.cluster_options import cluster_options
from podferry.cli.options.named_options import Verb, add_options
from podferry.cli.options.param_types import ParsedParam
from podferry.contract.annotation_values import parse_namespace

NAMESPACE = "podferry"
"""Where `podferry cache create` puts holders unless another one is given."""
IMAGE = "podferry:0.1.0"
"""Of the pods that verbs render."""

NAMESPACE_NAME = ParsedParam("TEXT", parse_namespace)


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
