"""The move harness: planned moves, rolling replacement and restarts under a constant rate of requests.
`make moves` runs it whole (moves.py); tests/integration/test_moves.py a short form of each part."""
