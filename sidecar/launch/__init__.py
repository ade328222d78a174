"""Start an agent as a child process of a command or of a Python program on this machine.

Nothing here runs inside a pod: there the kubelet starts the agent.
"""
