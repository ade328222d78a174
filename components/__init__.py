"""KFP components and the helpers that compose them."""
