"""Runs a TrainJob of Kubeflow Trainer, whose pods have podferry's annotations."""
