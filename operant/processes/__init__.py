"""Worker processes: what environments, samplers and containers that run in processes share.

`WorkerProcess` starts one process and talks to it, `WorkerPool` handles several and replaces those
that die, `ArrayAllocator` places arrays in shared memory, and `pack`, `unpack` and `publish` send
an actor once and its weights as often as they change. Only `weights` imports torch.
"""
