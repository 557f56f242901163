"""One thread for every test: small networks are faster so, and the numbers do not vary."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
