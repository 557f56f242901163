"""Checkpoints on disk: complete or absent, verified when loaded, and never running code.

`checkpoint` saves and loads, `encoding` turns state into JSON and tensors, `manifest` holds sizes
and hashes, and `durable` makes sure that files have reached the disk.
"""
