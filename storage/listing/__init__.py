"""List a dataset: recursive listings, directories in parallel, suggestions when nothing is found.

It sees stores through their protocol alone.
"""
