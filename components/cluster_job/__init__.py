"""Runs a training job from a step: created or attached to, followed to its end, deleted on cancel.

`train_job` and `paddle_job` share it. Pure: who the step is (`step_pod`), what a job's status means
(`job_kind`), why its pods fail or wait (`pod_problems`), what to print and when it has ended (`follower`).
The shell: requests (`api_server`), a job's creation and deletion (`launch`), the loop (`follow`).
"""
