import pytest

from podferry.cli.live_cluster import LiveCluster, scope
from podferry.contract.errors import AccessDenied, InvalidSpec, NotFound, Unavailable
from tests.support.live_api import live_api


@pytest.fixture
def api(tmp_path):
    with live_api(tmp_path) as api:
        yield api


@pytest.mark.parametrize(
    ("status", "kind"), [(401, AccessDenied), (403, AccessDenied), (404, NotFound), (500, Unavailable)]
)
def test_a_refusal_names_what_was_asked(api, status, kind):
    api.failure = status
    with pytest.raises(kind, match=f"cannot list Services in all namespaces .{status}") as raised:
        LiveCluster(str(api.kubeconfig)).get("/api/v1/services", f"list Services in {scope(None)}")
    assert ("Use an account that may list Services" in str(raised.value)) == (kind is AccessDenied)


def test_an_api_server_that_does_not_respond(api):
    api.kubeconfig.write_text(api.kubeconfig.read_text().replace("127.0.0.1:", "127.0.0.1:1#"))
    with pytest.raises(Unavailable, match="that you reach it"):
        LiveCluster(str(api.kubeconfig)).get("/api", "list Services")


def test_no_kubeconfig(tmp_path):
    with pytest.raises(InvalidSpec, match="no usable kubeconfig"):
        LiveCluster(str(tmp_path / "absent"))
