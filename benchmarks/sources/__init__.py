"""Rows of `benchmarks/sources.py`: for each scheme a module with `SOURCE`, its real server and usual tool."""
