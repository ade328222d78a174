"""Upload the outputs directory at intervals and at the end.

Outputs have no commit: each file is independent.
"""
