"""What `hdfs://` and `webhdfs://` share: a store over a few file operations, errors, configuration."""
