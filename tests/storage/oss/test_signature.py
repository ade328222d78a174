"""Signatures, against those of Alibaba's own client."""

import datetime

import pytest
from alibabacloud_oss_v2.signer import SignerV4
from alibabacloud_oss_v2.types import Credentials, HttpRequest, SigningContext

from podferry.storage.oss.keys import OssKeys
from podferry.storage.oss.signature import Oss4Signer

MOMENT = datetime.datetime(2026, 11, 23, 1, 2, 3, tzinfo=datetime.UTC)


def of_the_vendor(method, key, token):
    context = SigningContext(
        product="oss",
        region="cn-hangzhou",
        bucket="bucket",
        key=key,
        request=HttpRequest(method=method, url="https://bucket.oss-cn-hangzhou.aliyuncs.com/x"),
        credentials=Credentials("key", "secret", token or None),
        signing_time=MOMENT,
    )
    SignerV4().sign(context)
    headers = {name: context.request.headers[name] for name in ("x-oss-date", "x-oss-content-sha256")}
    return headers | {"Authorization": context.request.headers["Authorization"]}


def fields_of(lines):
    return dict(line.split(": ", 1) for line in lines.removesuffix("\r\n").split("\r\n"))


@pytest.mark.parametrize("token", ["", "token+of/tests="])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("key", "encoded"), [("a/b", "a/b"), ("a b+c%ü", "a%20b%2Bc%25%C3%BC")])
def test_signatures_are_those_of_alibabas_client(method, key, encoded, token):
    signer = Oss4Signer(OssKeys("key", "secret", token), "cn-hangzhou", MOMENT.timestamp)
    found = fields_of(signer.lines(method, f"/bucket/{encoded}"))
    assert found.pop("x-oss-security-token", "") == token
    assert found == of_the_vendor(method, key, token)


def test_a_new_day_has_a_key_of_its_own():
    now = [MOMENT.timestamp()]
    signer = Oss4Signer(OssKeys("key", "secret"), "cn-hangzhou", lambda: now[0])
    first = fields_of(signer.lines("GET", "/bucket/a"))
    assert fields_of(signer.lines("GET", "/bucket/a")) == first
    now[0] += 86400
    second = fields_of(signer.lines("GET", "/bucket/a"))
    assert "20261124/cn-hangzhou/oss/aliyun_v4_request" in second["Authorization"]
    fresh = Oss4Signer(OssKeys("key", "secret"), "cn-hangzhou", lambda: now[0])
    assert fields_of(fresh.lines("GET", "/bucket/a")) == second
