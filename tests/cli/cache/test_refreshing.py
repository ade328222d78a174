from podferry.cli.cache.live_caches import LiveCaches
from podferry.cli.cache.refreshing import ask_holders
from podferry.cli.live_cluster import LiveCluster
from podferry.contract.cache_api import REFRESH_PATH


def test_each_holder_is_asked(api, capsys):
    api.holders[f"POST podferry-0 {REFRESH_PATH}"] = lambda _: (202, b"{}")
    ask_holders(LiveCaches(LiveCluster(str(api.kubeconfig))), "podferry", "digits")
    assert any("/podferry-0:8091/proxy/v1/refresh?uri=s3" in line for line in api.asked)
    assert capsys.readouterr().err == ""


def test_why_nobody_can_be_asked(api, capsys):
    api.failure = 403
    ask_holders(LiveCaches(LiveCluster(str(api.kubeconfig))), "podferry", "digits")
    said = capsys.readouterr().err
    assert "have not been asked" in said
    assert "Run podferry cache warmup digits." in said
