"""The learning half of an agent under rlpyt's names, on the same agents."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box, Discrete
from torch import Tensor

from operant.core.errors import UsageError
from operant.core.experience import Experience, Tensors
from operant.core.spaces import Space, Spaces
from operant.frameworks import rlpyt
from operant.frameworks.rlpyt import AgentInputs, BatchSpec, RLAlgorithm
from operant.networks.assemble import NetworkConfig

SPEC = BatchSpec(8, 4)
EXAMPLES = {"observation": {"x": torch.zeros(3)}}
ACTIONS: dict[bool, Space] = {False: Discrete(2), True: Box(-1, 1, (2,))}  # by: continuous?
PLAIN, MEMORY = NetworkConfig(hidden=(8,)), NetworkConfig(hidden=(8,), lstm=4)
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"minibatch": 8, "epochs": 4},
    "a2c": {},
    "dqn": {"learning_starts": 0, "replay_size": 100, "batch_size": 4},
    "sac": {"learning_starts": 0, "replay_size": 100, "batch_size": 4},
}


def agent_of(name: str, network: NetworkConfig = PLAIN, **changes: Any) -> Any:
    spaces = Spaces({"x": Box(-1, 1, (3,))}, {"action": ACTIONS[name == "sac"]})
    return create(name, spaces, network, {"length": SPEC.T, **SETTINGS[name], **changes})


def samples(wasted: int = 0, name: str = "ppo") -> Experience:
    generator = torch.Generator().manual_seed(2)
    seen = torch.rand(SPEC.T + 1, SPEC.B, 3, generator=generator)
    no = torch.zeros(*SPEC, dtype=torch.bool)
    valid = ~no
    valid[:wasted] = False
    choices = torch.randint(0, 2, tuple(SPEC), generator=generator)
    pushes = torch.rand(*SPEC, 2, generator=generator)
    return Experience(
        observation={"x": seen},
        hidden_state={},
        first=torch.zeros(SPEC.T + 1, SPEC.B, dtype=torch.bool),
        action={"action": pushes if name == "sac" else choices},
        memo={"log_prob": torch.full(tuple(SPEC), -0.7)},
        reward=torch.randn(*SPEC, generator=generator),
        terminated=no,
        truncated=no,
        valid=valid,
        final_observation={"x": seen[1:]},
        replaced=no,
    )


def algo_of(name: str, cls: type[RLAlgorithm], network: NetworkConfig = PLAIN) -> Any:
    algo = cls()
    # Without standardised advantages a loss is the mean of the losses of its steps.
    changes = {"normalize_advantage": False} if network.lstm else {}
    algo.initialize(agent_of(name, network, **changes), 10, SPEC, True, EXAMPLES)
    return algo


def loss_of(
    algo: Any,
    rows: slice = slice(SPEC.T),
    valid: Tensor | None = None,
    first: Tensor | None = None,
    state: Tensors | None = None,
) -> float:
    """The loss of these rows: made-up returns, and an even policy when it acted."""
    chunk = samples()
    seen, reward = {"x": chunk.observation["x"][rows]}, chunk.reward[rows]
    action, old = (
        {"action": chunk.action["action"][rows]},
        {"action": torch.zeros(*reward.shape, 2)},
    )
    inputs = AgentInputs(seen, first=first)
    loss, _, _ = algo.loss(inputs, action, reward, -reward, valid, old, state)
    return float(loss.detach())


@pytest.mark.parametrize(("name", "steps"), [("ppo", 16), ("a2c", 1), ("dqn", 8)])
def test_an_update_tells_of_every_gradient_step(name: str, steps: int) -> None:
    algo = algo_of(name, getattr(rlpyt, name.upper()))
    info = algo.optimize_agent(0, samples())
    assert (len(info.loss), len(info.gradNorm)) == (steps, steps)
    assert len(info.entropy) == len(info.perplexity) == (0 if name == "dqn" else steps)
    assert algo.agent.updates == steps


@pytest.mark.parametrize("name", ["ppo", "sac"])
def test_optimizing_is_the_agents_own_update(name: str) -> None:
    algo, other = algo_of(name, getattr(rlpyt, name.upper())), agent_of(name)
    algo.optimize_agent(0, samples(name=name))
    other.memory.store(samples(name=name))
    assert other.update()["n_updates"] > 0
    pairs = zip(algo.agent.network.parameters(), other.network.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in pairs)


def test_sac_takes_as_many_steps_as_it_is_given() -> None:
    algo = algo_of("sac", rlpyt.SAC)
    info = algo.optimize_agent(0, samples(name="sac"))
    assert len(info.loss) == len(info.entropy) == algo.agent.updates == SPEC.size
    assert all(loss > 0 for loss in info.loss)
    assert info.perplexity[0] == pytest.approx(math.exp(info.entropy[0]))
    assert info.gradNorm == algo.optimize_agent(1).loss == []  # unbounded; nothing new is due


def test_returns_are_advantages_on_top_of_values() -> None:
    algo = algo_of("ppo", rlpyt.PPO)
    return_, advantage, valid = algo.process_returns(samples())
    value = algo.agent.network({"x": samples().observation["x"][0]}, {})[0]["value"].squeeze(-1)
    torch.testing.assert_close(return_[0] - advantage[0], value.detach())
    assert valid is None
    assert algo.process_returns(samples(wasted=2))[2].sum() == (SPEC.T - 2) * SPEC.B


def test_the_loss_is_the_agents_own() -> None:
    algo = algo_of("ppo", rlpyt.PPO)
    agent, chunk = algo.agent, samples()
    seen = {"x": chunk.observation["x"][:-1]}
    with torch.no_grad():
        old = {"action": agent.network(seen, {}, chunk.first[:-1])[0]["policy.action"]}
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


def test_memory_begins_anew_where_an_episode_does() -> None:
    algo = algo_of("ppo", rlpyt.PPO, MEMORY)
    first = torch.zeros(*SPEC, dtype=torch.bool)
    first[5] = True
    state = {k: torch.ones_like(x) for k, x in algo.agent.initial_state(SPEC.B).items()}
    before, after = loss_of(algo, slice(5), state=state), loss_of(algo, slice(5, SPEC.T))
    whole = loss_of(algo, first=first, state=state)
    assert whole == pytest.approx((5 * before + 3 * after) / 8)
    for other in (loss_of(algo, state=state), loss_of(algo, first=first)):
        assert abs(other - whole) > 1e-4


@pytest.mark.parametrize(("network", "counted"), [(MEMORY, 5), (PLAIN, SPEC.T)])
def test_with_memory_only_steps_before_the_first_reset_count(
    network: NetworkConfig, counted: int
) -> None:
    algo = algo_of("ppo", rlpyt.PPO, network)
    chunk, state = samples(), algo.agent.initial_state(SPEC.B)
    chunk.first[0] = chunk.first[5, 0] = True
    chunk = chunk._replace(hidden_state={k: x.expand(9, *x.shape) for k, x in state.items()})
    valid = algo.process_returns(chunk)[2]
    found = [SPEC.T] * SPEC.B if valid is None else valid.sum(0).tolist()
    assert found == [counted, *[SPEC.T] * (SPEC.B - 1)]
    told = loss_of(algo, valid=valid, first=chunk.first[:-1])
    assert loss_of(algo, valid=valid) == pytest.approx(told)


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


def test_the_class_has_rlpyts_own_spelling_too() -> None:
    assert rlpyt.RlAlgorithm is RLAlgorithm
    assert RLAlgorithm.opt_info_fields == ("loss", "gradNorm", "entropy", "perplexity")


def test_learning_goes_on_from_a_saved_state() -> None:
    one, two = algo_of("ppo", rlpyt.PPO), algo_of("ppo", rlpyt.PPO)
    one.optimize_agent(0, samples())
    two.load_optim_state_dict(one.optim_state_dict())
    assert one.optimize_agent(1, samples()) == two.optimize_agent(1, samples())
    assert BatchSpec(8, 4).size == 32


def test_each_algorithm_is_a_class_of_its_own_and_teaches_its_own_agent() -> None:
    classes = [rlpyt.A2C, rlpyt.PPO, rlpyt.DQN, rlpyt.SAC]
    assert [cls.__name__ for cls in classes] == ["A2C", "PPO", "DQN", "SAC"]
    assert not any(issubclass(one, two) for one in classes for two in classes if one is not two)
    for cls in (rlpyt.A2C, rlpyt.PPO):
        assert issubclass(cls, rlpyt.PolicyGradientAlgo)
    with pytest.raises(UsageError, match="agent: PPO teaches a PPO agent, not a DQN"):
        rlpyt.PPO().initialize(agent_of("dqn"), 10, SPEC, True, EXAMPLES)
