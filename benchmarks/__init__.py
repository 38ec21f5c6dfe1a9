"""Accord measured against everyone, each in an environment of its own: `make bench`, see `docs/benchmarks.md`."""
