"""The agent's loopback HTTP API and its callers: gate, preStop hook, `checkpoint done`, progress bars.

Handlers read state and set flags; they start no transfer. The commands load little: each is a process in
every pod.
"""
