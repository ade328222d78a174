"""The worker process, which runs the jobs from start to drain, and the supervisor that restarts it."""
