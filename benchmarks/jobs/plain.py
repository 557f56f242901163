"""The arithmetic of the training works in plain torch: acting once, and one gradient step.

Each is offered in the ways known to be fast: fp32 or bf16, channels last for images, a fused Adam,
twin critics as one batched product, a compiled loss. Nothing is stored, logged or checked.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from itertools import chain, count, pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Call = Callable[[], object]
ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


def mlp(sizes: list[int], activation: str) -> nn.Sequential:
    """Linear layers with an activation between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


class Pixels(nn.Module):
    """Bytes as numbers from 0 to 1, laid out as the convolutions are."""

    def __init__(self, last: bool) -> None:
        super().__init__()
        self.layout = torch.channels_last if last else torch.contiguous_format

    def forward(self, x: Tensor) -> Tensor:
        return x.float().mul_(1 / 255).contiguous(memory_format=self.layout)


def nature(outputs: int, last: bool) -> nn.Sequential:
    """The network of the Nature paper over 4 frames of 84 x 84."""
    convolutions = nn.Sequential(
        nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1), nn.ReLU(),
    )  # fmt: skip
    if last:
        convolutions = convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # not in torch's stubs
    head = nn.Sequential(nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, outputs))
    return nn.Sequential(Pixels(last), convolutions, head)


def low(on: bool) -> AbstractContextManager[None]:
    """bf16 where it is safe, if on."""
    return torch.autocast("cpu", torch.bfloat16, enabled=on)


def adam(parameters: Iterable[nn.Parameter]) -> tuple[torch.optim.Adam, list[nn.Parameter]]:
    """A fused Adam and what it moves."""
    moved = list(parameters)
    return torch.optim.Adam(moved, lr=3e-4, fused=True), moved


def acting(network: nn.Module, observation: Tensor, bf16: bool) -> Call:
    """A forward pass and a draw."""

    @torch.inference_mode()
    def act() -> Tensor:
        with low(bf16):
            raw = network(observation)
        out: Tensor = raw.float()
        return (out - torch.empty_like(out).exponential_().log_()).argmax(-1)

    return act


def surrogate(log_prob: Tensor, advantage: Tensor) -> Tensor:
    """PPO's clipped surrogate, against log-probabilities of 0."""
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = log_prob.exp()
    return torch.min(advantage * ratio, advantage * ratio.clamp(0.8, 1.2)).mean()


def ppo_step(
    networks: list[nn.Module], observation: Tensor, actions: int, bf16: bool, compiled: bool = False
) -> Call:
    """One gradient step: a network for both, or one for the policy and one for the value.

    `actions` counts choices, or is minus the dimensions of a continuous action.
    """
    size = len(observation)
    log_std = nn.Parameter(torch.zeros(max(-actions, 0)))
    optimizer, moved = adam(chain([log_std], *(network.parameters() for network in networks)))
    chosen = torch.randint(max(actions, 1), (size, 1))
    advantage, target, noise = torch.randn(size), torch.randn(size), torch.randn(size, abs(actions))

    def objective() -> Tensor:
        with low(bf16):
            outs = torch.cat([network(observation) for network in networks], -1).float()
        policy, value = outs[:, :-1], outs[:, -1]
        if actions > 0:
            every = policy.log_softmax(-1)
            log_prob, entropy = every.gather(-1, chosen).squeeze(-1), -(every.exp() * every).sum(-1)
        else:
            log_prob = -(((noise - policy) / log_std.exp()).square() / 2 + log_std).sum(-1)
            entropy = log_std.sum()
        loss = F.mse_loss(value, target) / 2 - surrogate(log_prob, advantage)
        return loss - 0.01 * entropy.mean()

    loss_of = torch.compile(objective, options={"compile_threads": 1}) if compiled else objective

    def learn() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss_of().backward()
        nn.utils.clip_grad_norm_(moved, 0.5, foreach=True)
        optimizer.step()

    return learn


def dqn_step(network: nn.Module, observation: Tensor, bf16: bool) -> Call:
    """One gradient step of DQN."""
    target, following = copy.deepcopy(network), observation.clone()
    optimizer, moved = adam(network.parameters())
    chosen = torch.zeros(len(observation), 1, dtype=torch.int64)

    def learn() -> None:
        with torch.no_grad(), low(bf16):
            worth = 0.99 * target(following).float().amax(-1)
        with low(bf16):
            q = network(observation).float().gather(-1, chosen).squeeze(-1)
        optimizer.zero_grad(set_to_none=True)
        F.smooth_l1_loss(q, worth).backward()
        nn.utils.clip_grad_norm_(moved, 10.0, foreach=True)
        optimizer.step()

    return learn


class Twins(nn.Module):
    """Two critics as one batched product."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        pairs = list(pairwise(sizes))
        self.weights = nn.ParameterList(torch.randn(2, i, o) / i**0.5 for i, o in pairs)
        self.biases = nn.ParameterList(torch.zeros(2, 1, o) for _, o in pairs)

    def forward(self, x: Tensor) -> Tensor:
        *hidden, (weight, bias) = zip(self.weights, self.biases, strict=True)
        x = x.expand(2, -1, -1)
        for w, b in hidden:
            x = torch.baddbmm(b, x, w).relu_()
        # Far quicker than a batched product of a matrix and a vector.
        worth: Tensor = (x * weight.mT).sum(-1) + bias.squeeze(-1)
        return worth


def squashed(actor: nn.Module, observation: Tensor) -> tuple[Tensor, Tensor]:
    """A drawn action between bounds, and its log-probability."""
    mean, log_std = actor(observation).chunk(2, -1)
    log_std = log_std.clamp(-20, 2)
    noise = torch.randn_like(mean)
    raw = mean + log_std.exp() * noise
    slope = 2 * (0.6931472 - raw - F.softplus(-2 * raw))
    return torch.tanh(raw), (-noise.square() / 2 - log_std - 0.9189385 - slope).sum(-1)


def sac_step(actor: nn.Module, critics: Twins, sizes: tuple[int, int, int], bf16: bool) -> Call:
    """One update of critics, actor, temperature and targets.

    `sizes` are those of batch, observation and action.
    """
    batch, seen, done = sizes
    targets = copy.deepcopy(critics).requires_grad_(False)
    log_alpha = nn.Parameter(torch.zeros(1))
    (critic_adam, moved), (actor_adam, _), (alpha_adam, _) = (
        adam(p) for p in (critics.parameters(), actor.parameters(), [log_alpha])
    )
    following: list[Tensor] = list(targets.parameters())
    followed: list[Tensor] = list(moved)
    before, after, action = (
        torch.randn(batch, seen),
        torch.randn(batch, seen),
        torch.zeros(batch, done),
    )

    def learn() -> None:
        alpha = log_alpha.detach().exp()
        with torch.no_grad(), low(bf16):
            drawn, log_prob = squashed(actor, after)
            worth = 0.99 * (targets(torch.cat([after, drawn], -1)).amin(0) - alpha * log_prob)
        with low(bf16):
            error = critics(torch.cat([before, action], -1)) - worth
        critic_adam.zero_grad(set_to_none=True)
        error.float().square().mean(1).sum().backward()
        critic_adam.step()
        critics.requires_grad_(False)
        with low(bf16):
            drawn, log_prob = squashed(actor, before)
            loss = (alpha * log_prob - critics(torch.cat([before, drawn], -1)).amin(0)).mean()
        actor_adam.zero_grad(set_to_none=True)
        loss.float().backward()
        actor_adam.step()
        critics.requires_grad_(True)
        log_alpha.grad = (done - log_prob.detach().float().mean()) * alpha
        alpha_adam.step()
        with torch.no_grad():
            torch._foreach_lerp_(following, followed, 0.005)

    return learn


def td3_steps(actor: nn.Module, critics: Twins, sizes: tuple[int, int, int], bf16: bool) -> Call:
    """One update of critics; every second one also of actor and targets.

    `sizes` are those of batch, observation and action.
    """
    batch, seen, done = sizes
    networks = nn.ModuleList([actor, critics])
    targets = copy.deepcopy(networks).requires_grad_(False)
    (critic_adam, _), (actor_adam, _) = (adam(x.parameters()) for x in (critics, actor))
    following: list[Tensor] = list(targets.parameters())
    followed: list[Tensor] = list(networks.parameters())
    before, after = torch.randn(2, batch, seen).unbind()
    action, steps = torch.zeros(batch, done), count(1)

    def learn() -> None:
        with torch.no_grad(), low(bf16):
            noise = (0.2 * torch.randn(batch, done)).clamp(-0.5, 0.5)
            ahead = (torch.tanh(targets[0](after)) + noise).clamp(-1, 1)
            worth = 0.99 * targets[1](torch.cat([after, ahead], -1)).amin(0)
        with low(bf16):
            error = critics(torch.cat([before, action], -1)) - worth
        critic_adam.zero_grad(set_to_none=True)
        error.float().square().mean(1).sum().backward()
        critic_adam.step()
        if next(steps) % 2:
            return
        critics.requires_grad_(False)
        with low(bf16):
            loss = -critics(torch.cat([before, torch.tanh(actor(before))], -1))[0].mean()
        actor_adam.zero_grad(set_to_none=True)
        loss.float().backward()
        actor_adam.step()
        critics.requires_grad_(True)
        with torch.no_grad():
            torch._foreach_lerp_(following, followed, 0.005)

    return learn
