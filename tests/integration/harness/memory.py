"""Bounds on memory that hold for every build."""

from .sanitizer import has_sanitizers
from .sidecar import binary

MIB = 1 << 20

# AddressSanitizer shadows memory and puts red zones around each piece, and keeps back what is freed
# up to 256 MiB (its flag quarantine_size_mb).
SANITIZER_FACTOR = 16
QUARANTINE = 256 * MIB


def bound(size):
    """`size` bytes more are allowed; more of them where the program is built with AddressSanitizer."""
    return size * SANITIZER_FACTOR + QUARANTINE if has_sanitizers(binary()) else size
