"""A pod's datasets: list, select, check the size against the volume, fetch.

It decides what to fetch. How bytes are fetched belongs to `fetch`, unpacking to `archive` and `pack`.
"""
