"""Breaks the agents in many small ways, one at a time, and sees a fast test go red for each.

`python tests/breaks.py [agent …]` copies the package, replaces one expression, and runs that
agent's numeric tests on the copy. It prints which test noticed, and fails if none did.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import gymnasium  # noqa: F401  # slow to import, and inherited by every fork
import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent
TESTS = {
    "a2c": "test_a2c.py",
    "ppo": "test_ppo.py",
    "trpo": "test_trpo.py",
    "vtrace": "test_vtrace.py",
    "acer": "test_acer.py",
    "dqn": "test_dqn.py",
    "rainbow": "test_rainbow.py",
    "ddpg": "test_ddpg.py",
    "sac": "test_sac*.py",
}


@dataclass(frozen=True)
class Break:
    """One expression of a source file, and what to put in its place."""

    agent: str
    what: str
    file: str  # under the package
    old: str
    new: str

    def apply(self, package: Path) -> None:
        """Replace the expression, which must be there exactly once."""
        path = package / self.file
        source = path.read_text()
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.file} holds {self.old!r} {source.count(self.old)} times, not 1"
            )
        path.write_text(source.replace(self.old, self.new))


A2C, PPO, DQN, DDPG, SAC, ADVANTAGES, UNROLL, TARGET, OFF_POLICY, CRITICS, OPTIMIZER = (
    f"agents/{name}.py"
    for name in (
        *("a2c", "ppo", "dqn", "ddpg", "sac", "advantages", "unroll", "target", "off_policy"),
        *("critics", "optimizer"),
    )
)
TARGET_ENTROPY, ACER = "agents/target_entropy.py", "agents/acer.py"
HEAD, ATOMS, NOISY, ACTOR = "agents/head.py", "ops/atoms.py", "networks/noisy.py", "agents/actor.py"
ENSEMBLE, REPLAY = "networks/ensemble.py", "memory/replay_settings.py"
TRPO, VTRACE, TRUST = "agents/trpo.py", "agents/vtrace.py", "ops/trust_region.py"
RETURNS, POLICY, VALUE = "ops/returns.py", "ops/policy.py", "ops/value.py"
DETERMINISTIC = "ops/deterministic.py"
N_STEP = [
    ("bootstraps past the end of the task", "~batch.terminated", "(batch.valid | True)"),
    ("no bootstrap where the clock ended it", "~batch.terminated", "~batch.ended"),
    ("rewards of the next episode", "batch.cut, self", "batch.cut & False, self"),
    ("gamma dropped", "self.config.gamma * ~", "1.0 * ~"),
]
CRITIC_LOSSES = [
    ("wasted rows learned from", "reduced(loss, valid) for", "reduced(loss, None) for"),
    ("importance weights dropped", "weight * loss for", "loss for"),
]

# By agent and file: what it amounts to, the expression, and what takes its place.
TABLE: dict[str, dict[str, list[tuple[str, str, str]]]] = {
    "a2c": {
        ADVANTAGES: [
            ("bootstraps past the end of the task", "gamma * ~chunk.terminated", "gamma"),
            ("no bootstrap where the clock ended it", "~chunk.terminated", "~chunk.ended"),
            ("traces into the next episode", "lam * ~chunk.cut", "lam * ~chunk.terminated"),
            ("gamma dropped", "= gamma * ~", "= 1.0 * ~"),
            ("lambda dropped", "= lam * ~", "= 1.0 * ~"),
            (
                "value target minus the value",
                "target=advantage + value",
                "target=advantage - value",
            ),
            ("bootstraps from a reset observation", "if chunk.replaced.any()", "if False"),
            ("a final observation without its memory", "k: x[1:][chunk", "k: 0 * x[1:][chunk"),
        ],
        A2C: [
            (
                "value error against the advantage",
                "criterion(value, batch.target)",
                "criterion(value, batch.advantage)",
            ),
            ("entropy punished", "entropy=-policy.", "entropy=policy."),
            ("wasted steps learned from", "batch, batch.valid)]", "batch, None)]"),
            ("value_coef dropped", "(self.config.value_coef,", "(1.0,"),
            ("entropy_coef dropped", "self.config.entropy_coef)", "1.0)"),
            (
                "advantages never standardised",
                "if self.config.normalize_advantage",
                "if False",
            ),
        ],
        UNROLL: [
            (
                "hidden state not reset at first",
                "batch.first[start:end],",
                "batch.first[start:end] & False,",
            ),
        ],
        RETURNS: [("advantage without its baseline", "next_value - value,", "next_value,")],
        POLICY: [
            ("policy loss upside down", "return -log_prob *", "return log_prob *"),
            (
                "the entropy's weight on the value",
                "(value, entropy), strict",
                "(entropy, value), strict",
            ),
        ],
        OPTIMIZER: [
            ("one loss of several", "return reduce(torch.add, losses", "return min(losses"),
        ],
    },
    "ppo": {
        PPO: [
            ("ratio upside down", "log_prob - batch.log_prob", "batch.log_prob - log_prob"),
            ("gain minimised", "policy=-policy.", "policy=policy."),
            ("entropy punished", "entropy=-policy.", "entropy=policy."),
            (
                "value error against the advantage",
                "criterion(value, batch.target)",
                "criterion(value, batch.advantage)",
            ),
            ("one epoch", "passes(batch, config.epochs", "passes(batch, 1"),
            (
                "advantages never standardised",
                "if self.config.normalize_advantage",
                "if False",
            ),
            ("epochs whatever the divergence", "if config.target_kl and", "if False and"),
        ],
        POLICY: [
            ("min → max", "gain <= bound", "gain >= bound"),
            ("clipped from above alone", "clamp(1 - clip, 1 + clip)", "clamp(0, 1 + clip)"),
            ("clipped from below alone", "clamp(1 - clip, 1 + clip)", "clamp(1 - clip, 9e9)"),
            ("ratio without its exponential", "ratio = log_ratio.exp()", "ratio = 1 + log_ratio"),
        ],
        ADVANTAGES: [
            ("no gamma in what is bootstrapped", "= gamma * ~", "= 1.0 * ~"),
            (
                "value target minus the value",
                "target=advantage + value",
                "target=advantage - value",
            ),
        ],
        UNROLL: [
            ("wasted steps learned from", "rows.valid.nonzero()", "(rows.valid | True).nonzero()"),
            ("wasted steps learned from, with memory", "batch.valid[:, part]", "None"),
        ],
    },
    "trpo": {
        TRPO: [
            ("deviations compared with themselves", "x.detach().clone() for", "x.detach() for"),
            ("a step not taken back", "if found is None:", "if False:"),
            ("ratio upside down", "log_prob - batch.log_prob", "batch.log_prob - log_prob"),
            (
                "advantages never standardised",
                "if config.normalize_advantage",
                "if False",
            ),
            ("masks forgotten in the divergence", "kl(old, new, masks)", "kl(old, new, {})"),
            ("wasted steps learned from", "mean(gain, valid)", "mean(gain, None)"),
            ("wasted steps in the divergence", "mean(kl, valid)", "mean(kl, None)"),
            (
                "value error against the advantage",
                "criterion(value, batch.target)",
                "criterion(value, batch.advantage)",
            ),
            ("one epoch", "batch, config.epochs", "batch, 1"),
            (
                "the policy in training mode",
                "return self.critic_modules",
                "return self.actor.mode_dependent",
            ),
            ("the value without its memory", "CriticState(critic, ()) if", "None if"),
            ("the policy's memory for the value", "config.lam, NAME)", 'config.lam, "actor")'),
        ],
        TRUST: [
            ("a divergence above the bound", "judged.kl <= max_kl", "judged.kl <= 2 * max_kl"),
            ("a step that loses", "judged.gain > 0 and", "judged.gain < 0 and"),
            ("no damping", "flatten(found) + damping * vector", "flatten(found)"),
            ("half the divergence", "(2 * max_kl / curvature)", "(max_kl / curvature)"),
            ("plain gradient", "conjugate_gradient(product, gradient, iterations)", "gradient"),
            ("no backtracking", "shrink**i * step", "step"),
            ("one iteration", "for _ in range(iterations)", "for _ in range(1)"),
        ],
        ADVANTAGES: [
            ("a final observation without its memory", "k: x[1:][chunk", "k: 0 * x[1:][chunk"),
            ("no bootstrap where the clock ended it", "~chunk.terminated", "~chunk.ended"),
        ],
    },
    "vtrace": {
        VTRACE: [
            ("ratio upside down", "masks) - batch.log_prob", "masks) * -1 + batch.log_prob"),
            ("old values", "chunk._replace(memo=known)", "chunk"),
            ("bootstraps past the end of the task", "~chunk.terminated", "(chunk.valid | True)"),
            ("no bootstrap where the clock ended it", "~chunk.terminated", "~chunk.ended"),
            (
                "traces into the next episode",
                "config.lam * ~chunk.cut",
                "config.lam * ~chunk.terminated",
            ),
            ("the policy's weight without a bound", ".clamp(max=config.rho_policy)", ""),
            ("advantages without weight", "weight * (q - value)", "(q - value)"),
            ("masks forgotten", "batch.action, masks)", "batch.action, {})"),
            ("rho for c", "config.rho, config.c)", "config.c, config.rho)"),
            ("value_coef dropped", "(self.config.value_coef,", "(1.0,"),
            ("entropy punished", "entropy=-policy.", "entropy=policy."),
            ("wasted steps learned from", "batch, batch.valid)]", "batch, None)]"),
            (
                "value error against the advantage",
                "criterion(value, batch.target)",
                "criterion(value, batch.advantage)",
            ),
        ],
        RETURNS: [
            ("errors without weight", "error = ratio.clamp(max=rho) *", "error = 1.0 *"),
            ("traces without weight", "trace * ratio.clamp(max=c)", "trace"),
            ("q of the value, not of v", "next_value + trace * later", "next_value"),
        ],
    },
    "acer": {
        ACER: [
            (
                "wasted rows learned from",
                "q - target), batch.valid)",
                "q - target), None)",
            ),
            (
                "ratios of what was not decided",
                "torch.where(batch.valid.unsq",
                "torch.where((batch.valid | True).unsq",
            ),
            ("entropy punished", "entropy=-policy.", "entropy=policy."),
            ("gain minimised", "policy=-policy.", "policy=policy."),
            ("no trust region", "if not self.config.trust", "if True"),
            (
                "a trust region around itself",
                "unroll(self.average.network, b",
                "unroll(self.network, b",
            ),
            (
                "average policy never moves",
                "self.average.polyak_update(self.config.tau)",
                "pass",
            ),
            ("gradients into z", "@torch.no_grad()\n    def learning", "def learning"),
            ("replay before learning starts", "self.memory.ready() and", "True and"),
            (
                "as many replays every time",
                "self.random.poisson(self.config.replay_ratio)",
                "int(self.config.replay_ratio)",
            ),
            ("masks forgotten", "return masks_of(", "return {} and masks_of("),
            ("V-trace of the value, not of the action", "*bounds)[1]", "*bounds)[0]"),
            ("V-trace's bounds dropped", "trace, *bounds)", "trace)"),
        ],
        RETURNS: [
            (
                "carried back by the row's own ratio",
                "carried = torch.cat((ratio[1:], torch.zeros_like(ratio[:1])))",
                "carried = ratio",
            ),
            (
                "ratios not cut off",
                "ratio = log_ratio.exp().clamp(max=1)",
                "ratio = log_ratio.exp()",
            ),
        ],
        POLICY: [
            ("no bias correction", ".clamp(min=0) * q", ".clamp(min=0) * 0 * q"),
            ("importance weights not cut off", ".clamp(max=log(bound)) - log", " - log"),
            ("the trust region's bound dropped", "keepdim=True) - bound)", "keepdim=True))"),
            ("divergence the wrong way", "k = -(average - log_prob)", "k = -(log_prob - average)"),
            ("pushed out of the trust region", "gradient - excess", "gradient + excess"),
        ],
    },
    "dqn": {
        OFF_POLICY: [
            *N_STEP,
            ("one reward whatever n", "batch.cut, self.config.n_step", "batch.cut, 1"),
            ("priorities of the losses", "error = error.abs()", "error = error**2"),
            ("no priorities", "self.memory.prioritize(drawn.place, error)", "pass"),
        ],
        DQN: [
            ("target from the online network", "(self.target.network, b", "(self.network, b"),
            ("double by the wrong network", "if self.config.double", "if not self.config.double"),
            ("double judged by its own choice", "of_action(following,", "of_action(chooser,"),
            (
                "masks forgotten in targets",
                "head.choices, masks)\n        at_stop",
                "head.choices, {})\n        at_stop",
            ),
            (
                "masks of the row before",
                "slice(*rows)), self.names)",
                "slice(0, rows[1] - 1)), self.names)",
            ),
            (
                "target network never moves",
                "self.target.polyak_update(self.config.tau)",
                "pass",
            ),
            ("target network moves at once", "% self.config.target_every == 0", ">= 0"),
            ("wasted rows learned from", "weight * loss, valid)", "weight * loss, None)"),
            ("importance weights dropped", "weight * loss, valid)", "loss, valid)"),
            ("epsilon stands still", "self.epsilon(acted)", "self.epsilon(0)"),
        ],
        VALUE: [("duelling without the mean", "from_rows(x - mean", "from_rows(x")],
        TARGET: [
            ("gradients into the target network", ".requires_grad_(False)", ""),
            (
                "tau backwards",
                "list(self.source.parameters()), tau)",
                "list(self.source.parameters()), 1 - tau)",
            ),
        ],
        REPLAY: [
            (
                "a burst when learning starts",
                "int((stored - self.learning_starts)",
                "int((stored - 0)",
            ),
        ],
        UNROLL: [
            (
                "hidden state not reset at first",
                "batch.first[start:end],",
                "batch.first[start:end] & False,",
            ),
        ],
    },
    "rainbow": {
        OFF_POLICY: N_STEP,
        DQN: [
            ("no noise to learn with", "layer.redraw(self.generator)", "layer.still()"),
            ("target from the online network", "(self.target.network, b", "(self.network, b"),
            (
                "the distribution after one step",
                "ended=batch.cut, n=self",
                "ended=batch.cut | True, n=self",
            ),
            (
                "atoms of the next episode",
                "ended=batch.cut, n=self",
                "ended=batch.cut & False, n=self",
            ),
            ("the range forgotten", "config.atoms, config.value_min,", "config.atoms, -10.0,"),
            ("importance weights dropped", "weight * loss, valid)", "loss, valid)"),
        ],
        HEAD: [
            (
                "priorities of the cross-entropy",
                "atoms.kl(target, predicted)",
                "atoms.cross_entropy(target, predicted)",
            ),
            (
                "duelling without the state value",
                'out["value"].unsqueeze(-1)',
                '0 * out["value"].unsqueeze(-1)',
            ),
            (
                "several parts accepted",
                "self.choices.values())) > 1",
                "self.choices.values())) > 9",
            ),
            (
                "atoms before choices",
                "unflatten(-1, (-1, self.count))",
                "unflatten(-1, (self.count, -1)).mT",
            ),
        ],
        ATOMS: [
            ("nothing clipped", "value.clamp(low, high)", "value"),
            ("all to the nearest atom", ".clamp(min=0)  #", ".round().clamp(min=0)  #"),
            (
                "cross-entropy the wrong way",
                "return -(target * log_prob)",
                "return (target * log_prob)",
            ),
        ],
        NOISY: [
            (
                "one noise for ever",
                "generator=generator, device",
                "generator=torch.Generator().manual_seed(1), device",
            ),
            (
                "sigma without a gradient",
                "self.weight, self.weight_sigma, noise",
                "self.weight, self.weight_sigma.detach(), noise",
            ),
        ],
        ACTOR: [
            ("the noise of exploration in evaluation", "if explore else layer.still()", ""),
            ("no noise to explore with", "layer.redraw(self.generator) if explore else", ""),
        ],
    },
    "ddpg": {
        OFF_POLICY: N_STEP,
        DDPG: [
            ("policy descends its critic", '{"actor": -policy.masked', '{"actor": policy.masked'),
            ("policy climbs the last critic", "q[..., 0, 0]", "q[..., -1, 0]"),
            ("policy of the first row alone", "q[..., 0, 0],", "q[:, :1, 0, 0],"),
            (
                "targets from the online policy",
                "self.propose(self.policy_target.network,",
                "self.propose(self.network,",
            ),
            (
                "targets from the online critics",
                "outputs(self.critics.target.network",
                "outputs(self.critics.network",
            ),
            ("no smoothing", "if not scale:", "if True:"),
            ("policy never delayed", "if delayed else", "if False else"),
            ("others' actions dropped", "taken | self.propose(", "self.propose("),
            (
                "priority of a hysteretic target",
                "(q.detach() - target).abs()",
                "(0 * q.detach()).abs()",
            ),
            (
                "policy's target left behind",
                "self.policy_target.polyak_update(self.config.tau)",
                "pass",
            ),
            ("policy_lr dropped", "config.policy_lr or config.lr", "config.lr"),
        ],
        CRITICS: [
            *CRITIC_LOSSES,
            ("twin min → max", "expected).amin(-1)", "expected).amax(-1)"),
        ],
        DETERMINISTIC: [
            ("target actions out of bounds", "(action + noise).clamp(-1.0, 1.0)", "action + noise"),
            ("actions without bounds", "[POLICY + name].tanh()", "[POLICY + name]"),
        ],
        VALUE: [("rates the wrong way", "target > guess, increase", "target < guess, increase")],
        "ops/explore.py": [("noise never clipped", ".clamp(-clip, clip)", "")],
    },
    "sac": {
        OFF_POLICY: N_STEP,
        SAC: [
            ("entropy punished", "soft + alpha_of", "soft - alpha_of"),
            (
                "entropy dropped",
                "alpha_of(self.log_alpha) * entropy",
                "alpha_of(self.log_alpha) * 0",
            ),
            (
                "log of alpha for alpha",
                "alpha_of(self.log_alpha) *",
                "self.log_alpha.detach() *",
            ),
            ("alpha the wrong way", "apply([gradient]", "apply([-gradient]"),
            ("actor descends its critics", '{"actor": -policy.masked', '{"actor": policy.masked'),
            ("density for entropy", "append(-log_prob)", "append(log_prob)"),
            (
                "targets from the online critics",
                "soft_value(self.critics.target.network",
                "soft_value(self.critics.network",
            ),
            (
                "the actor's gradient for critics",
                "self.actor_loss, self.actor_optimizer)",
                "self.actor_loss, self.critic_optimizer)",
            ),
            ("tau dropped", "polyak_update(self.config.tau)", "polyak_update(1.0)"),
        ],
        CRITICS: [
            *CRITIC_LOSSES,
            ("twin min → max", "whole.amin(-2)", "whole.amax(-2)"),
            ("twin min → max of several parts", "expected).amin(-1)", "expected).amax(-1)"),
            ("masks forgotten in expectations", "masks.get(name))", "None)"),
            ("continuous part dropped", '[out["value"].squeeze(-1), *parts]', "parts"),
        ],
        TARGET_ENTROPY: [
            ("target entropy of a Box positive", "target -= 0 if", "target += 0 if"),
            ("target entropy whatever is allowed", "if not masks or", "if masks or"),
        ],
        ENSEMBLE: [
            (
                "one critic's memory for both",
                "HiddenState(within(hidden_state, str(i)))",
                'HiddenState(within(hidden_state, "0"))',
            ),
        ],
        VALUE: [("even expectation", "probability * values, 0)", "values / 3, 0)")],
    },
}
BREAKS = [
    Break(agent, what, file, old, new)
    for agent, files in TABLE.items()
    for file, rows in files.items()
    for what, old, new in rows
]


class FirstRed:
    """Remembers the first test that failed."""

    def __init__(self) -> None:
        self.name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.split("::")[-1].split("[")[0]


def noticed(found: Break) -> str:
    """The first test that goes red, or nothing. Runs in a process of its own, before any import."""
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(io.StringIO()) as said:
        copy, red = Path(place), FirstRed()
        shutil.copytree(ROOT / "operant", copy / "operant", ignore=shutil.ignore_patterns("__py*"))
        shutil.copytree(ROOT / "tests" / "agents", copy / "tests" / "agents")
        shutil.copy(ROOT / "tests" / "agent_parts.py", copy / "tests" / "agents")
        shutil.copy(ROOT / "pyproject.toml", copy)
        found.apply(copy / "operant")
        sys.path.insert(0, place)
        os.chdir(copy)
        tests = sorted(map(str, (copy / "tests" / "agents").glob(TESTS[found.agent])))
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], plugins=[red])
        broken = str(sys.modules["operant"].__file__).startswith(place)
    if not broken or (code != 0 and not red.name):  # it did not even run, which proves nothing
        raise RuntimeError(f"{found.agent}, {found.what}:\n{said.getvalue()[-2000:]}")
    return red.name


def main(agents: list[str]) -> int:
    """Run the breaks of these agents, of all if there are none, and print a table."""
    chosen = [found for found in BREAKS if not agents or found.agent in agents]
    tests = []
    print("| agent | break | the test that goes red |\n|---|---|---|", flush=True)
    # Forked after the slow imports, and a fresh process each: the package is imported broken.
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        for found, test in zip(chosen, pool.imap(noticed, chosen), strict=True):
            print(f"| {found.agent} | {found.what} | {test or '**none**'} |", flush=True)
            tests.append(test)
    print(f"\n{sum(map(bool, tests))} of {len(chosen)} breaks noticed")
    return 0 if all(tests) else 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # imports more than a second's worth
    sys.exit(main(sys.argv[1:]))
