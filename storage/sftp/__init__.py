"""The engine for `sftp://` and `ssh://`: asyncssh for SSH, and the file transfer protocol's own messages.

`messages`, `message_buffer` and `login` do no I/O over the network; `channel` sends requests without waiting
for one another; `connections` opens connections and replaces lost ones; `client`, `pending_read`, `transfers`
and `directories` are what a store does with them.
"""
