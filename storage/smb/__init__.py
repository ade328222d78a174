"""The engine for `smb://`: shares of Samba, Windows and Azure Files, over SMB 2.1 to 3.1.1.

The messages are our own: a library that builds each field of a message as an object takes a millisecond and
more for a small file, ten times what the server takes. Sources: Microsoft's open specifications MS-SMB2,
MS-FSCC and MS-ERREF. pyspnego logs in (NTLM), cryptography signs and encrypts.
"""
