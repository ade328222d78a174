import pytest

from podferry.cli.live_cluster import LiveCluster, scope
from podferry.contract.errors import AccessDenied, InvalidSpec, NotFound, Unavailable
from tests.cli.cache.test_status import ApiServer, kubeconfig

__all__ = ["kubeconfig"]


@pytest.mark.parametrize(
    ("status", "kind"), [(401, AccessDenied), (403, AccessDenied), (404, NotFound), (500, Unavailable)]
)
def test_a_refusal_names_what_was_asked(kubeconfig, monkeypatch, status, kind):
    monkeypatch.setattr(ApiServer, "do_GET", lambda self: self.respond({}, status))
    with pytest.raises(kind, match=f"cannot list Services in all namespaces .{status}") as raised:
        LiveCluster(str(kubeconfig)).get("/api/v1/services", f"list Services in {scope(None)}")
    assert ("Use an account that may list Services" in str(raised.value)) == (kind is AccessDenied)


def test_an_api_server_that_does_not_respond(kubeconfig):
    kubeconfig.write_text(kubeconfig.read_text().replace("127.0.0.1:", "127.0.0.1:1#"))
    with pytest.raises(Unavailable, match="that you reach it"):
        LiveCluster(str(kubeconfig)).get("/api", "list Services")


def test_no_kubeconfig(tmp_path):
    with pytest.raises(InvalidSpec, match="no usable kubeconfig"):
        LiveCluster(str(tmp_path / "absent"))
