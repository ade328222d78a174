import pytest
import structlog

from podferry.contract.errors import CredentialsMissing, Refused
from podferry.contract.location_guards import UNGUARDED, LocationGuards
from podferry.contract.spec import Access
from podferry.sidecar.config.store_access import store_config


@pytest.fixture
def secret(tmp_path):
    folder = tmp_path / "secret"
    folder.mkdir()
    (folder / "AWS_ACCESS_KEY_ID").write_text("of the secret\n")
    return folder


def test_a_secret_replaces_the_environment(monkeypatch, secret):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the environment")
    config = store_config(Access(), secret)
    assert dict(config.credentials) == {"AWS_ACCESS_KEY_ID": "of the secret"}


def test_without_a_secret_the_environment_is_used(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
    monkeypatch.setenv("HOME", "/nonexistent")
    assert store_config(Access(), None).credentials["AWS_ACCESS_KEY_ID"] == "of the environment"


def test_a_missing_secret_is_an_error(tmp_path):
    with pytest.raises(CredentialsMissing, match="there is no such directory"):
        store_config(Access(), tmp_path / "absent")


def test_a_missing_secret_is_named(tmp_path):
    with pytest.raises(CredentialsMissing, match=r"\(there is no such directory; Secret stroe\)"):
        store_config(Access(secret="stroe"), tmp_path / "absent")


def test_the_spec_overrides_endpoint_and_region(secret):
    config = store_config(Access(endpoint="http://127.0.0.1:9", region="r1"), secret)
    assert (config.endpoint, config.region) == ("http://127.0.0.1:9", "r1")
    config = store_config(Access(), secret)
    assert (config.endpoint, config.region) == (None, None)


def test_entries_of_no_proxy_that_match_nothing_are_named_once(monkeypatch):
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("NO_PROXY", "example.com.,https://host,10.0.0.0/33")
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            assert store_config(Access(), None).network.proxies.excluded == ("example.com",)
    [warning] = logs
    assert warning["entries"] == "https://host, 10.0.0.0/33"


def test_endpoints_of_a_secret_are_guarded(secret, monkeypatch):
    (secret / "AWS_ENDPOINT_URL").write_text("https://evil.example\n")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://evil.example")
    for guards in (None, UNGUARDED, LocationGuards((("https://evil.*",),))):
        assert store_config(Access(), secret, guards).credentials["AWS_ENDPOINT_URL"]
    with pytest.raises(Refused, match="Use one of the allowed endpoints"):
        store_config(Access(), secret, LocationGuards((("*",), ("https://store.example",))))
    # The environment is the webhook's.
    assert store_config(Access(), None, LocationGuards((("https://store.example",),)))


def test_the_proxy_of_a_secret_is_guarded_as_an_endpoint(secret, monkeypatch):
    """With a CA of its own, it reads and answers what is meant for the endpoint."""
    (secret / "HTTPS_PROXY").write_text("http://me:pa55@proxy.example:3128\n")
    guarded = LocationGuards((("https://store.example",),))
    with pytest.raises(Refused, match=r"the Secret's proxy: .* \(http://proxy.example:3128\)") as caught:
        store_config(Access(), secret, guarded)
    assert "pa55" not in str(caught.value)
    for guards in (
        None,
        UNGUARDED,
        LocationGuards((("https://store.example", "http://proxy.example:3128"),)),
    ):
        assert store_config(Access(), secret, guards).network.proxies.https is not None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")  # the policy's
    assert store_config(Access(), secret, guarded).network.proxies.https.authorization
