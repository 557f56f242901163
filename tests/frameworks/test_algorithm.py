"""The learning half of an agent under rlpyt's names, on the same agents."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gymnasium.spaces import Box, Discrete

from operant.agents import AGENTS
from operant.core.errors import UsageError
from operant.core.experience import Experience
from operant.core.spaces import Spaces
from operant.frameworks import algorithm
from operant.frameworks.algorithm import AgentInputs, BatchSpec, RLAlgorithm
from operant.networks.build import NetworkConfig, build_network

SPEC = BatchSpec(8, 4)
EXAMPLES = {"observation": {"x": torch.zeros(3)}}
SPACES = Spaces({"x": Box(-1, 1, (3,))}, {"action": Discrete(2)})
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"minibatch": 8, "epochs": 4},
    "a2c": {},
    "dqn": {"learning_starts": 0, "replay_size": 100, "batch_size": 4},
}


def agent_of(name: str) -> Any:
    cls: Any
    config: Any
    cls, config = AGENTS[name]
    generator = torch.Generator().manual_seed(1)

    def make(inputs: Any, outputs: Any, late: Any = None) -> Any:
        return build_network(NetworkConfig(hidden=(8,)), inputs, outputs, generator, late)

    return cls.create(make, SPACES, config(length=SPEC.T, **SETTINGS[name]), seed=1)


def samples(wasted: int = 0) -> Experience:
    generator = torch.Generator().manual_seed(2)
    seen = torch.rand(SPEC.T + 1, SPEC.B, 3, generator=generator)
    no = torch.zeros(*SPEC, dtype=torch.bool)
    valid = ~no
    valid[:wasted] = False
    return Experience(
        observation={"x": seen},
        hidden_state={},
        first=torch.zeros(SPEC.T + 1, SPEC.B, dtype=torch.bool),
        action={"action": torch.randint(0, 2, tuple(SPEC), generator=generator)},
        memo={"log_prob": torch.full(tuple(SPEC), -0.7)},
        reward=torch.randn(*SPEC, generator=generator),
        terminated=no,
        truncated=no,
        valid=valid,
        final_observation={"x": seen[1:]},
        replaced=no,
    )


def algo_of(name: str, cls: type[RLAlgorithm]) -> Any:
    algo = cls()
    algo.initialize(agent_of(name), 10, SPEC, True, EXAMPLES)
    return algo


@pytest.mark.parametrize(("name", "steps"), [("ppo", 16), ("a2c", 1), ("dqn", 8)])
def test_an_update_tells_of_every_gradient_step(name: str, steps: int) -> None:
    algo = algo_of(name, getattr(algorithm, name.upper()))
    info = algo.optimize_agent(0, samples())
    assert (len(info.loss), len(info.gradNorm)) == (steps, steps)
    assert len(info.entropy) == len(info.perplexity) == (0 if name == "dqn" else steps)
    assert algo.agent.updates == steps


def test_optimizing_is_the_agents_own_update() -> None:
    algo, other = algo_of("ppo", algorithm.PPO), agent_of("ppo")
    algo.optimize_agent(0, samples())
    other.memory.store(samples())
    other.update()
    pairs = zip(algo.agent.network.parameters(), other.network.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in pairs)


def test_returns_are_advantages_on_top_of_values() -> None:
    algo = algo_of("ppo", algorithm.PPO)
    return_, advantage, valid = algo.process_returns(samples())
    value = algo.agent.network({"x": samples().observation["x"][0]}, {})[0]["value"].squeeze(-1)
    torch.testing.assert_close(return_[0] - advantage[0], value.detach())
    assert valid is None
    assert algo.process_returns(samples(wasted=2))[2].sum() == (SPEC.T - 2) * SPEC.B


def test_the_loss_is_the_agents_own() -> None:
    algo = algo_of("ppo", algorithm.PPO)
    agent, chunk = algo.agent, samples()
    seen = {"x": chunk.observation["x"][:-1]}
    with torch.no_grad():
        old = {"action": agent.network(seen, {}, chunk.first[:-1])[0]["action"]}
    return_, advantage, valid = algo.process_returns(chunk)
    loss, entropy, perplexity = algo.loss(
        AgentInputs(seen), chunk.action, return_, advantage, valid, old
    )
    mean = advantage.mean()
    surrogate = -((advantage - mean) / advantage.std()).mean()  # every ratio is one
    value = (return_ - advantage - return_).square().mean() / 2
    assert loss.item() == pytest.approx((surrogate + value).item(), rel=1e-4, abs=1e-6)
    assert perplexity.item() == pytest.approx(entropy.exp().item())
    assert 0 < entropy.item() <= 0.6932


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_spec": BatchSpec(9, 4)}, "batch_spec.T = 9: expected the agent's 8"),
        ({"world_size": 2}, "world_size = 2, rank = 0"),
    ],
)
def test_what_cannot_be_taught_is_refused(change: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"batch_spec": SPEC, "mid_batch_reset": True, "examples": EXAMPLES}
    with pytest.raises(UsageError, match=message):
        RLAlgorithm().initialize(agent_of("ppo"), 10, **(settings | change))


def test_learning_goes_on_from_a_saved_state() -> None:
    one, two = algo_of("ppo", algorithm.PPO), algo_of("ppo", algorithm.PPO)
    one.optimize_agent(0, samples())
    two.load_optim_state_dict(one.optim_state_dict())
    assert one.optimize_agent(1, samples()) == two.optimize_agent(1, samples())
    assert BatchSpec(8, 4).size == 32
