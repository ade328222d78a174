"""The engine for `ftp://` and `ftps://`, on the standard library's client in threads.

`login` is pure; `session` adds TLS to the client; `sessions` shares a few of them among threads and replaces
lost ones; `directories`, `facts` and `transfers` are what a store does with one.
"""
