"""Repositories of the Hugging Face Hub, read at one commit: datasets, models and spaces."""
