"""Chaos on real processes: see tests/README.md."""
