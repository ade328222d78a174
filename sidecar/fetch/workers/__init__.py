"""Worker processes that run jobs of a fetch on other cores.

They get signed requests and directories; they hold no credentials and decide nothing.
"""
