"""One thread for every test: small networks are faster so, and the numbers do not vary."""

from __future__ import annotations

import multiprocessing
from multiprocessing import forkserver

import torch

torch.set_num_threads(1)

# Workers of every kind are forked from one server, which loads torch now and not each of them.
multiprocessing.set_forkserver_preload(
    ["operant.samplers.sampler_worker", "operant.envs.providers.gymnasium"]
)
forkserver.ensure_running()
