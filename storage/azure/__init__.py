"""Azure requests of our own: endpoint and GET requests. Everything else goes through obstore."""
