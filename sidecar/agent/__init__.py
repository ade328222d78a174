"""The worker process, from its start to the end of its drain, and the supervisor that restarts it.

The jobs are put together here. What a job does belongs to its own package.
"""
