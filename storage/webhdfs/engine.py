"""What the engine of WebHDFS declares."""

from podferry.storage.engine import Engine, Scheme

WEBHDFS = Engine(
    name="webhdfs",
    store="podferry.storage.webhdfs.store:WebHdfsStore",
    schemes=(
        Scheme(
            names=("webhdfs", "swebhdfs"),
            page="webhdfs",
            tested_on="Apache Hadoop",
            credentials=("HADOOP_USER_NAME", "HADOOP_CONF_DIR", "WEBHDFS_DELEGATION_TOKEN"),
            exclusive_create=True,
            refused_characters=":",
            connection_pool=True,
        ),
    ),
)
