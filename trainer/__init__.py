"""What training code may import."""
