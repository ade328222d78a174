"""The URI schemes of the obstore engine."""

from __future__ import annotations

from podferry.storage.azure.endpoint import AZURE
from podferry.storage.credentials.endpoints import VENDORS

SCHEMES = (*VENDORS, *AZURE)
"""What the obstore engine opens; every other scheme goes to fsspec, a directory or memory."""
