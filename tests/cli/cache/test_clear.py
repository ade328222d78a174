import pytest

from podferry.contract.cache_api import HolderStatus
from tests.cli.cache.conftest import add_pod, say

READ = HolderStatus("n1", (), ("s3://b/c",), readers=("team/train-0",))
PODS = "/api/v1/namespaces/podferry/pods/"
WORKLOAD = "/apis/apps/v1/namespaces/podferry/statefulsets/podferry-cache-digits"


@pytest.fixture
def clear(podferry, api):
    """The verb, for a cache with holders on two nodes."""
    add_pod(api, "podferry", "podferry-1", "n2")
    say(api, "podferry-1", HolderStatus("n2", (), ("s3://b/c",)))
    return lambda *words: podferry("cache", "clear", "digits", *words, "--kubeconfig", api.kubeconfig)


def pods(api):
    return {path.removeprefix(PODS) for path in api.objects if path.startswith(PODS)}


def test_each_holder_is_replaced(clear, api):
    said = clear()
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == ["podferry-0 on n1 is replaced", "podferry-1 on n2 is replaced"]
    assert pods(api) == set()
    assert api.objects[WORKLOAD]["spec"]["replicas"] == 1


def test_one_node(clear, api):
    assert clear("--node", "n2").out == "podferry-1 on n2 is replaced\n"
    assert pods(api) == {"podferry-0"}
    said = clear("--node", "n3")
    assert said.code == 1
    assert "no holder on n3. It has some on: n1" in said.err


def test_an_empty_cache_knows_its_nodes(clear, api):
    assert clear("--empty").out.splitlines() == ["podferry-0 on n1 stops", "podferry-1 on n2 stops"]
    for _ in range(2):
        workload = api.objects[WORKLOAD]
        assert workload["spec"]["replicas"] == 0
        assert workload["metadata"]["annotations"]["podferry.io/cleared-nodes"] == "1"
        clear("--empty", "--force")


def test_empty_is_for_all_nodes(clear):
    said = clear("--empty", "--node", "n1")
    assert said.code == 2
    assert "leave --node out" in said.err


def test_it_is_refused_while_pods_read(clear, api):
    say(api, "podferry-0", READ)
    said = clear()
    assert said.code == 1
    assert "in use by 1 pod (team/train-0)" in said.err
    assert pods(api) == {"podferry-0", "podferry-1"}
    assert clear("--force").code == 0
    assert pods(api) == set()
