"""Where credentials and endpoints come from, and when they are read again.

What an engine makes of them belongs to the engine.
"""
