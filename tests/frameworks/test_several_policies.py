"""MADDPG over a user's own modules, against the same update in plain torch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.frameworks import MADDPG

GAMMA, RATE, TAU, WIDTHS = 0.9, 0.1, 0.25, (3, 2)


class Actor(nn.Module):
    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(width, 2)

    def forward(self, state: Tensor) -> Any:
        return self.layer(state).tanh()


class Critic(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(sum(WIDTHS) + 4, 1)

    def forward(self, state: Tensor, action: Tensor) -> Any:
        return self.layer(torch.cat([state, action], -1)).sin()


def made(**settings: Any) -> MADDPG:
    rates = {"actor_learning_rate": RATE, "critic_learning_rate": RATE, "update_rate": TAU}
    actors = [[Actor(w, s + i) for i, w in enumerate(WIDTHS)] for s in (1, 5)]
    critics = [[Critic(s + i) for i in range(2)] for s in (10, 20)]
    given = rates | {"discount": GAMMA, "replay_size": 50, "batch_size": 4} | settings
    kind: Any = MADDPG
    framework: MADDPG = kind(*actors, *critics, torch.optim.SGD, nn.MSELoss(), **given)
    with torch.no_grad():  # networks and their targets differ from now on
        for parameter in [*framework.actors.parameters(), *framework.critics.parameters()]:
            parameter.add_(0.1)
    return framework


def episodes(count: int = 4) -> list[list[dict[str, Any]]]:
    torch.manual_seed(3)
    found = []
    for number, width in enumerate(WIDTHS):
        states, actions = torch.randn(count + 1, 1, width), torch.randn(count, 1, 2)
        found.append(
            [
                {
                    "state": {"state": states[t]},
                    "action": {"action": actions[t]},
                    "next_state": {"state": states[t + 1]},
                    "reward": float(t + number),
                    "terminal": t == count - 1,
                }
                for t in range(count)
            ]
        )
    return found


def plain_update(models: dict[str, Any], stored: Any) -> None:
    state, after, action = (
        [torch.cat([s[k][k.removeprefix("next_")] for s in steps]) for steps in stored]
        for k in ("state", "next_state", "action")
    )
    alive = torch.tensor([[0.0 if s["terminal"] else 1.0] for s in stored[0]])
    following = torch.cat([m(x) for m, x in zip(models["actor_targets"], after, strict=True)], 1)
    seen, then, taken = (torch.cat(x, 1) for x in (state, after, action))
    for i in range(2):
        reward = torch.tensor([[s["reward"]] for s in stored[i]])
        target = (reward + GAMMA * alive * models["critic_targets"][i](then, following)).detach()
        critic, actor = models["critics"][i], models["actors"][i]
        descend(critic, (critic(seen, taken) - target).square().mean())
        proposed = [actor(x) if j == i else action[j] for j, x in enumerate(state)]
        descend(actor, -critic(seen, torch.cat(proposed, 1)).mean())
    with torch.no_grad():
        for name in ("actor", "critic"):
            pairs = (models[f"{name}_targets"].parameters(), models[f"{name}s"].parameters())
            for own, other in zip(*pairs, strict=True):
                own.lerp_(other, TAU)


def descend(module: nn.Module, loss: Tensor) -> None:
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(module.parameters(), gradients, strict=True):
            parameter.sub_(RATE * gradient)


def check_same(framework: MADDPG, models: dict[str, Any]) -> None:
    for name, model in models.items():
        own = getattr(framework, name).state_dict()
        torch.testing.assert_close(own, model.state_dict(), rtol=0, atol=1e-6)


def test_an_update_is_the_same_as_in_plain_torch(monkeypatch: Any) -> None:
    framework, stored = made(), episodes()
    models = {name: copy.deepcopy(getattr(framework, name)) for name in MADDPG._is_top}
    framework.store_episodes(stored)
    draw = framework.replay_buffer.draw
    monkeypatch.setattr(framework.replay_buffer, "draw", lambda n: draw(n, method="all"))
    policy, value = framework.update()
    plain_update(models, stored)
    check_same(framework, models)
    assert (type(policy), type(value)) == (float, float)


def test_switches_leave_models_as_they_are() -> None:
    framework = made()
    models = {name: copy.deepcopy(getattr(framework, name)) for name in MADDPG._is_top}
    framework.store_episodes(episodes())
    policy, _ = framework.update(False, False, False)
    check_same(framework, models)
    assert policy != 0.0


def test_lists_come_in_and_go_out() -> None:
    framework = made()
    states = [{"state": torch.randn(5, width)} for width in WIDTHS]
    assert [x.shape for x in framework.act(states)] == [(5, 2), (5, 2)]
    noisy = framework.act_with_noise(states, (0.5, 0.6))
    shift = [a - b for a, b in zip(noisy, framework.act(states), strict=True)]
    assert min(x.min().item() for x in shift) >= 0.5 - 1e-6
    target = framework.act(states, use_target=True)
    assert not torch.equal(target[0], framework.act(states)[0])


def test_a_critic_reads_what_a_function_of_the_users_own_makes() -> None:
    class Own(MADDPG):
        @staticmethod
        def action_concat_function(actions: Any, *_: Any) -> Any:
            return {"action": torch.cat([0 * x["action"] for x in actions], 1)}

    models = [[Actor(w, i) for i, w in enumerate(WIDTHS)] for _ in "ab"]
    critics = [[Critic(i) for i in range(2)] for _ in "ab"]
    kind: Any = Own
    framework = kind(*models, *critics, torch.optim.SGD, nn.MSELoss())
    framework.store_episodes(episodes())
    before = copy.deepcopy(framework.actors.state_dict())
    framework.update()
    torch.testing.assert_close(framework.actors.state_dict(), before)  # no gradient came through


def test_files_hold_a_list_of_models(tmp_path: Any) -> None:
    one, other = made(), made()
    one.actor_targets[1].layer.weight.data.fill_(3.0)  # type: ignore[operator, union-attr]
    one.save(tmp_path)
    other.load(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "actor_targets_0.pt",
        "critic_targets_0.pt",
    ]
    assert next(other.actors[1].parameters()).detach().mean().item() == 3.0


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda e: e.pop(), "there are 1 episodes; expected 2"),
        (lambda e: e[1].pop(), r"have \[4, 3\] steps"),
        (lambda e: e[1][2].pop("reward"), "agent 1: step 2: lacks 'reward'"),
    ],
)
def test_a_fault_stores_nothing(fault: Any, said: str) -> None:
    framework, stored = made(), episodes()
    fault(stored)
    with pytest.raises(UsageError, match=said):
        framework.store_episodes(stored)
    assert framework.replay_buffer.size() == 0


def test_lists_of_other_lengths_are_refused() -> None:
    with pytest.raises(UsageError, match="four lists of the same length"):
        MADDPG([Actor(3, 0)], [], [], [], torch.optim.SGD, nn.MSELoss())
    with pytest.raises(UsageError, match="each with the number of its own actor"):
        made(critic_visible_actors=[[1], [0, 1]])
