"""The admission webhook: pod annotations to JSON patches. A pure core in thin shells."""
