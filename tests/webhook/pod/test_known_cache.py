from podferry.webhook.pod.known_cache import KnownCache


def test_caches_are_compared_by_value() -> None:
    one = KnownCache("a", "s3://b/c", "http://10.0.0.1:8091", "team")
    assert {one, KnownCache("a", "s3://b/c", "http://10.0.0.1:8091", "team")} == {one}


def test_a_digest_is_no_part_of_the_uri() -> None:
    assert KnownCache("a", "s3://b/c#sha256=" + "0" * 64, "http://10.0.0.1:8091", "team").uri == "s3://b/c"
