"""The node cache: holders fetch a dataset once and serve it to the pods near them."""
