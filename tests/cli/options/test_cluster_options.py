import click
import pytest

from podferry.cli.options.cluster_options import cluster_options


@pytest.mark.parametrize("words", [(), ("--kubeconfig", "file", "--context", "name")])
def test_they_are_the_arguments_of_a_cluster(words):
    seen = []
    verb = click.command()(cluster_options(lambda **options: seen.append(options)))
    verb.main([*words], standalone_mode=False)
    assert seen == [
        {"kubeconfig": "file", "context": "name"} if words else {"kubeconfig": None, "context": None}
    ]
