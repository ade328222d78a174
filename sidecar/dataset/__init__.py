"""Decides what to fetch of a pod's datasets: list, select, check the size. `fetch` transfers the bytes."""
