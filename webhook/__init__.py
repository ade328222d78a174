"""The admission webhook: pods' wishes → JSON patches. Its core is pure; the rest are thin shells."""
