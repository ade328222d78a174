"""The manifests of a cache: ordinary Kubernetes objects, without an operator."""
