"""Azure requests of our own: endpoint and GET requests.

Everything else on Azure goes through obstore.
"""
