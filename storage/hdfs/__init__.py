"""The engine for `hdfs://` and `viewfs://`, by Hadoop's own protocols."""
