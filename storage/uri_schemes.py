"""The URI schemes of the obstore engine."""

from __future__ import annotations

from podferry.storage.azure.endpoint import AZURE_SCHEMES
from podferry.storage.credentials.endpoints import S3_VENDORS

OBSTORE_SCHEMES = (*S3_VENDORS, *AZURE_SCHEMES)
"""What the obstore engine opens; every other scheme goes to fsspec, a directory or memory."""
