"""Verbs that read pods' manifests: what they mean, how they are injected, what a policy does to them."""
