from podferry.cache.peers.endpoints import holder_urls

PORTS = [{"name": "http", "port": 8099}]


def test_every_address_once_whether_it_is_ready_or_not():
    ready, starting = ({"addresses": [f"10.0.0.{n}"], "conditions": {"ready": n == 1}} for n in (1, 2))
    slices = [{"ports": PORTS, "endpoints": [ready, starting]}, {"ports": PORTS, "endpoints": [ready]}]
    assert holder_urls(slices) == ("http://10.0.0.1:8099", "http://10.0.0.2:8099")


def test_version_6_and_no_named_port():
    assert holder_urls([{"endpoints": [{"addresses": ["fd00::1"]}]}]) == ("http://[fd00::1]:8091",)


def test_nobody_is_there():
    assert holder_urls([{"ports": PORTS, "endpoints": None}, {}]) == ()
