import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

S3 = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:9000", "ftp://host", "minio", "http://bad host:9", "http://a:99999"]
)
def test_an_endpoint_is_a_url(endpoint):
    with pytest.raises(InvalidSpec, match="an endpoint must be a URL"):
        open_store(parse_uri("s3://b/x"), StoreConfig(endpoint=endpoint, credentials=S3))
