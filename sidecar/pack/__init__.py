"""Build, read and verify packs: many small files in a few indexed tar shards.

Archives without an index belong to `archive`.
"""
