"""Starts an agent as a child process outside a pod; in a pod the kubelet starts it."""
