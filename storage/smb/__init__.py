"""The engine for `smb://`: shares of Samba, Windows and Azure Files, over SMB 2.1 to 3.1.1.

The messages are our own: a library that makes each field of a message an object takes 1.4 ms of a core for
a small file, measured with smbprotocol 1.17; these take 0.12 ms. Sources: Microsoft's open specifications
MS-SMB2, MS-FSCC and MS-ERREF. pyspnego logs in (NTLM, Kerberos), cryptography signs and encrypts.
"""
