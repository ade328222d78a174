from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.oss.other_region import wrong_endpoint, wrong_region

LOCATION = StoreLocation(parse_uri("oss://data/x"), "https://oss-cn-hangzhou.aliyuncs.com")


def test_the_endpoint_is_named_in_the_remedy():
    problem = wrong_endpoint(LOCATION, "oss-cn-beijing.aliyuncs.com").problems[0]
    assert problem.measured == (
        "it is at oss-cn-beijing.aliyuncs.com; endpoint https://oss-cn-hangzhou.aliyuncs.com"
    )
    assert "OSS_ENDPOINT=https://oss-cn-beijing.aliyuncs.com" in problem.remedy


def test_the_region_of_the_signature_is_named():
    assert "signed for the region cn-x" in wrong_region(LOCATION, "cn-x").problems[0].measured
