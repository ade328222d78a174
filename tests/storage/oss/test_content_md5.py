from podferry.storage.oss.content_md5 import content_md5


def test_the_digest_is_that_of_the_rfc():
    assert content_md5(b"") == "1B2M2Y8AsgTpgAmY7PhCfg=="
    assert content_md5(memoryview(b"0123456789")) == "eB5eJF1ptWaXm4bijSPyxw=="  # Alibaba's own example
