"""Networks of one's own by path: their settings, and what every agent does with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from own_agents import Perceptron, made
from running import AGENTS, COMMON, call, only_run, trace
from torch import nn

import operant
from operant.config import load_yaml
from operant.core.errors import UsageError
from operant.session.compose import compose
from operant.session.try_out import try_out

NET = "own_agents:Perceptron"
HIDDEN = "--network.hidden 8 "
NAMES = ("a2c", "ppo", "trpo", "vtrace", "dqn", "ddpg", "sac")
LINES = {name: AGENTS[name] for name in NAMES}


def common(line: str) -> str:
    """A command without settings of the built-in network."""
    return f"{line} {COMMON.replace(HIDDEN, '')}"


def trained(line: str, runs: Path) -> Path:
    result = call(common(line), runs)
    assert result.code == 0, result.err
    return only_run(runs)


@pytest.mark.every(2)
@pytest.mark.parametrize("net", ["Perceptron", "Remembering"])
@pytest.mark.parametrize("agent", LINES)
def test_every_agent_trains_and_goes_on_with_a_network_of_ones_own(
    agent: str, net: str, tmp_path: Path
) -> None:
    line = f"{LINES[agent]} --network own_agents:{net}"
    whole, run = (trained(f"{line} --steps {n}", tmp_path / str(n)) for n in (192, 128))
    assert call(["resume", str(run), "--steps", "192", "--quiet"]).code == 0
    assert trace(run) == trace(whole)
    assert load_yaml(whole / "config.yaml")["network"]["path"] == f"own_agents:{net}"
    assert "over 1 episodes" in call(["eval", str(whole), "--episodes", "1"]).out


def test_an_agent_that_explores_by_noise_wants_it_in_a_network_of_ones_own(tmp_path: Path) -> None:
    line = f"{AGENTS['rainbow']} --network"
    refused = call(common(f"{line} own_agents:Perceptron"), tmp_path)
    assert "own_agents:Perceptron': has no noisy layer" in refused.err
    run = trained(f"{line} own_agents:NoisyPerceptron --steps 128", tmp_path)
    agent: Any = operant.load(run).agent
    assert len(agent.noisy) == 2  # one in the network, one in its target network


def test_settings_are_flags_and_are_checked(tmp_path: Path) -> None:
    run = trained(f"{LINES['a2c']} --network {NET} --network.width 9", tmp_path)
    assert load_yaml(run / "config.yaml")["network"] == {
        "path": NET,
        "width": 9,
        "activation": "tanh",
    }
    agent: Any = operant.load(run).agent
    assert agent.network.module.body.weight.shape == (9, 4)
    wrong = call(common(f"train a2c --network {NET} --network.width 0"), tmp_path)
    assert "network.width = 0: expected a finite number of at least 1" in wrong.err


def test_the_help_lists_the_settings() -> None:
    said = call(f"train a2c --network {NET} --help").out
    assert "network  One hidden layer, whatever the observations and outputs." in said
    assert "--network.width INT >=1" in said
    assert "units of the hidden layer [16]" in said


@pytest.mark.parametrize(
    "network", [NET, {"path": NET, "width": 5}, Perceptron, {"path": Perceptron, "width": 5}]
)
def test_a_file_and_python_name_it_too(network: Any) -> None:
    config, _ = compose("ppo", {"network": network})
    assert vars(config.network) == {"width": 5 if isinstance(network, dict) else 16} | {
        "activation": "tanh"
    }


def test_a_recipe_leaves_out_its_network() -> None:
    from operant.recipes import RECIPES  # noqa: PLC0415

    config, recipe = compose("ppo", {"network": NET}, recipes=RECIPES)
    assert (recipe is not None, type(config.network).path) == (True, NET)


@pytest.mark.parametrize("flag", ["--network.hidden 8", "--network.lstm 4"])
def test_settings_of_the_built_in_network_are_refused(flag: str) -> None:
    said = call(f"train ppo --network {NET} {flag}").err
    name = flag.split(maxsplit=1)[0]
    why = f"{name}: is a setting of the built-in networks, and {NET} has its own: width, activation"
    assert why in said
    with pytest.raises(UsageError, match=r"network.hidden: is a setting of the built-in"):
        compose("ppo", {"network": {"path": NET, "hidden": [8]}})


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("own_agents:Nothing", "network = 'own_agents:Nothing': module 'own_agents' has no"),
        ("mlp", "expected the module and name of a class or function"),
        (nn.Linear(2, 2), "is a Linear; expected a class or function that makes a new nn.Module"),
        ("own_agents:function", r"expected it to be called with (observation_spaces, outputs"),
        ("own_agents:no_default", "the argument 'width' has no default; expected both"),
        ("own_agents:no_annotation", "the argument 'width' has no annotation; expected both"),
        ("own_agents:no_module", "gave a list; expected an nn.Module"),
        ("own_agents:Silent", "gives the outputs ['policy.action']; expected also 'value', (2, 1)"),
        ("own_agents:Narrow", "output 'value' is torch.float32 (2, 3) for a batch of 2; expected "),
        ("own_agents:Broken", "its forward fails on observation (2, 4): RuntimeError: mat1 and"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_made(network: Any, said: str) -> None:
    with pytest.raises(UsageError) as error:
        try_out(compose("ppo", {"network": network})[0])
    assert said in str(error.value)


def test_a_critic_that_remembers_actions_is_refused() -> None:
    tree = {"network": "own_agents:Leaky", "env": {"id": "Pendulum-v1"}}
    with pytest.raises(UsageError, match=r"hidden state 'h' depends on action\.action"):
        try_out(compose("sac", tree)[0])


def weights(**settings: Any) -> dict[str, Any]:
    return try_out(compose("ppo", {"network": NET, **settings})[0]).agent.network.state_dict()


def test_first_weights_depend_on_the_seed_alone() -> None:
    before, rng = weights(), torch.get_rng_state()
    torch.manual_seed(99)
    same, other = weights(), weights(seed=2)
    assert all(torch.equal(x, same[name]) for name, x in before.items())
    assert not torch.equal(before["module.body.weight"], other["module.body.weight"])
    torch.set_rng_state(rng)


def test_workers_act_by_a_network_of_ones_own(tmp_path: Path) -> None:
    line = f"{LINES['ppo']} --network {NET} --env.workers 2 --env.manager simple --sampler"
    runs = [trained(f"{line} {kind}", tmp_path / kind) for kind in ("serial", "parallel")]
    assert trace(runs[0])[0] == trace(runs[1])[0]


def test_what_workers_cannot_import_is_refused(tmp_path: Path) -> None:
    settings: Any = {"sampler": "parallel", "steps": 64, "runs": tmp_path, "quiet": True}
    with pytest.raises(UsageError, match=r"define them at the top level of a module"):
        operant.train("ppo", "CartPole-v1", network=made, **settings)


def test_a_script_is_told_where_to_define_what_workers_need(tmp_path: Path) -> None:
    script = """
from own_agents import Perceptron
import operant
class Net(Perceptron): pass
operant.train("ppo", "CartPole-v1", network=Net, sampler="parallel", steps=64, quiet=True)
"""
    (tmp_path / "script.py").write_text(script)
    paths = [str(Path(operant.__file__).parents[1]), str(Path(__file__).parent)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    words = [sys.executable, "script.py"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "(they are defined in the script that runs); define them at the top" in done.stderr
