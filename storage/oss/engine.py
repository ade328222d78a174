"""What the engine of OSS declares."""

from podferry.storage.engine import Engine, Scheme

OSS = Engine(
    name="oss",
    store="podferry.storage.oss.store:OssStore",
    requires=("alibabacloud_oss_v2",),
    extra="oss",
    schemes=(
        Scheme(
            names=("oss",),
            page="oss",
            tested_on="an imitation of OSS",
            credentials=(
                "OSS_ACCESS_KEY_ID",
                "OSS_ACCESS_KEY_SECRET",
                "OSS_SESSION_TOKEN",
                "akId",
                "akSecret",
                "ALIBABA_CLOUD_ROLE_ARN",
            ),
            checksums="CRC64-ECMA",
            exclusive_create=True,
            resumed_uploads=True,
            server_copy=True,
            connection_pool=True,
        ),
    ),
)
