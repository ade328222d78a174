"""What the engine of obstore declares."""

from podferry.storage.engine import Engine, Scheme

AWS_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE")
BOS_KEYS = (
    *("BOS_ACCESS_KEY_ID", "BOS_SECRET_ACCESS_KEY", "BOS_SESSION_TOKEN"),
    *("access-key", "secret-key", "ak", "sk"),  # keys of Secrets
)
AZURE_KEYS = (
    *("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN"),
    *("AZURE_STORAGE_CONNECTION_STRING", "AZURE_CLIENT_ID"),
)
OBSTORE = Engine(
    name="obstore",
    store="podferry.storage.obstore.store:ObstoreStore",
    schemes=(
        Scheme(
            names=("s3", "s3a"),
            page="s3",
            tested_on="versitygw, MinIO",
            credentials=AWS_KEYS,
            checksums="CRC64NVME, CRC32, CRC32C, SHA, MD5",
            exclusive_create=True,
            resumed_uploads=True,
            server_copy=True,
            connection_pool=True,
        ),
        Scheme(
            names=("bos",),
            page="bos",
            tested_on="versitygw as an imitation",
            credentials=BOS_KEYS,
            checksums="MD5",
            exclusive_create=True,
            resumed_uploads=True,
            server_copy=True,
            connection_pool=True,
        ),
        Scheme(
            names=("az", "abfs", "abfss"),
            page="azure",
            tested_on="Azurite",
            credentials=AZURE_KEYS,
            checksums="MD5",
            exclusive_create=True,
            refused_characters="\\",  # Azure would store a slash
            resumed_uploads=True,
            connection_pool=True,
        ),
    ),
)
