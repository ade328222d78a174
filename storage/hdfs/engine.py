"""What the engine of HDFS's own protocols declares."""

from podferry.storage.engine import Engine, Scheme

HDFS = Engine(
    name="hdfs",
    store="podferry.storage.hdfs.store:HdfsStore",
    requires=("hdfs_native",),
    extra="hdfs",
    schemes=(
        Scheme(
            names=("hdfs", "viewfs"),
            page="hdfs",
            tested_on="Apache Hadoop",
            credentials=("HADOOP_USER_NAME", "HADOOP_CONF_DIR", "HDFS_PRINCIPAL", "HDFS_KEYTAB"),
            checksums="CRC32C of blocks",
            exclusive_create=True,
            refused_characters=":",
        ),
    ),
)
