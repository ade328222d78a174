from podferry.cache.manifests.arguments import not_expanded


def test_kubernetes_replaces_nothing():
    """`$$(` is how a pod writes `$(`. Source: the Kubernetes API, Container.args."""
    assert not_expanded("s3://b/$(HOME)/$x") == "s3://b/$$(HOME)/$x"
