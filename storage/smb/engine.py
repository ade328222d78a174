"""What the engine of SMB declares."""

from podferry.storage.engine import Engine, Scheme

SMB = Engine(
    name="smb",
    store="podferry.storage.smb.store:SmbStore",
    requires=("spnego", "cryptography"),
    extra="smb",
    schemes=(
        Scheme(
            names=("smb",),
            page="smb",
            tested_on="Samba",
            credentials=("SMB_USERNAME", "SMB_PASSWORD", "SMB_DOMAIN", "username", "password", "domain"),
            exclusive_create=True,
        ),
    ),
)
