"""The LimitRanges and ResourceQuotas of a namespace, and whether a pod fits them."""
