"""Alibaba's own client, for the imitation of OSS."""

from __future__ import annotations

import alibabacloud_oss_v2 as sdk

from tests.support.oss.server import KEY_ID, KEY_SECRET, REGION, OssServer


def client_of(
    server: OssServer,
    version: str = "v4",
    key: str = KEY_ID,
    secret: str = KEY_SECRET,
    region: str = REGION,
    token: str | None = None,
) -> sdk.Client:
    """A client that does not retry; `version` is that of the signature."""
    config = sdk.config.load_default()
    config.credentials_provider = sdk.credentials.StaticCredentialsProvider(key, secret, token)
    config.region, config.endpoint, config.signature_version = region, server.endpoint, version
    config.retry_max_attempts = 1
    return sdk.Client(config)
