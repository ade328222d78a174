import click
import pytest

from podferry.cli.cache.cache_args import NAMESPACE, cache_args


def test_they_name_a_cache_and_where_it_is():
    seen = []
    verb = click.command()(cache_args(lambda **options: seen.append(options)))
    verb.main(["digits"], standalone_mode=False)
    assert seen == [{"name": "digits", "namespace": NAMESPACE, "kubeconfig": None, "context": None}]
    with pytest.raises(click.BadParameter, match="32 at most"):
        verb.main(["Digits"], standalone_mode=False)
