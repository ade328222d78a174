"""The engine for `webhdfs://` and `swebhdfs://`: HDFS by its REST interface."""
