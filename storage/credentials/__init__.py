"""Where credentials and endpoints come from, and when they are read again.

Engines turn them into their own options.
"""
