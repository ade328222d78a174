"""List a dataset: recursive listings, directories in parallel, suggestions if nothing is found.

It uses stores only through their interface.
"""
