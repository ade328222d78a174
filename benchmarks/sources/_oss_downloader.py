"""Downloads a prefix with Alibaba's SDK: its downloader for large files, one request for each small one.

Called with endpoint, region, bucket, prefix and target; keys come from the environment.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import alibabacloud_oss_v2 as oss

THREADS = 8
"""More did not help on two cores."""
LARGE = 8 << 20
"""From here on the SDK's downloader, in parts of 6 MiB over three connections for each file."""


def main(endpoint: str, region: str, bucket: str, prefix: str, target: str) -> None:
    config = oss.config.load_default()
    config.credentials_provider = oss.credentials.EnvironmentVariableCredentialsProvider()
    config.endpoint, config.region = endpoint, region
    client = oss.Client(config)
    downloader = client.downloader()

    def fetch(item: oss.ObjectProperties) -> None:
        path = Path(target, item.key.removeprefix(prefix))
        path.parent.mkdir(parents=True, exist_ok=True)
        request = oss.GetObjectRequest(bucket, item.key)
        if item.size >= LARGE:
            downloader.download_file(request, str(path))
        else:
            client.get_object_to_file(request, str(path))

    pages = client.list_objects_v2_paginator(limit=1000).iter_page(
        oss.ListObjectsV2Request(bucket, prefix=prefix)
    )
    with ThreadPoolExecutor(THREADS) as threads:
        for done in [threads.submit(fetch, item) for page in pages for item in page.contents or ()]:
            done.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
