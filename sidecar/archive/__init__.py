"""Unpack tar and zip archives while they stream.

Where the bytes come from is no concern of this package.
"""
