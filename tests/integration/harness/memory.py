"""Bounds on memory that hold for every build."""

from .sidecar import binary

MIB = 1 << 20

# A sanitizer keeps freed memory back for a while and shadows the rest.
SANITIZER_FACTOR = 16


def bound(size):
    """`size` bytes more are allowed; more of them where the program is built with AddressSanitizer."""
    with open(binary(), "rb") as program:
        sanitized = b"__asan_init" in program.read()
    return size * SANITIZER_FACTOR if sanitized else size
