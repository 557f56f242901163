"""Reads commands from standard input and runs each in a fork of itself.

A fork has torch already, which a new process would import for seconds before it could be killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import torch
from running import at_call

from operant.cli.main import main
from operant.report import play, plot
from operant.session import runner, tensorboard_file

LOADED = (play, plot, runner, tensorboard_file)


def child(line: str) -> None:
    words, kill_at = json.loads(line)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    if kill_at:
        where, nth = kill_at
        at_call(where, nth, lambda: os.kill(os.getpid(), signal.SIGKILL))
    os._exit(main(words))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for command in sys.stdin:
        pid = os.fork()
        if pid == 0:
            child(command)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
