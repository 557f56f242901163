"""Operant's agents under the names and calls of the systems it descends from."""
