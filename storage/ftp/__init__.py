"""The engine for `ftp://` and `ftps://`, on the standard library's client in threads.

`login` and `replies` are pure; `session` adds TLS to the client; `sessions` shares a few of them among
threads and replaces lost ones; `directories`, `facts` and `transfers` are what a store does with one.
`small_reads` reads small files of sound servers on the event loop instead, with `readiness`.
"""
