"""Gymnasium's own checker, each of its messages as one plain sentence."""

from __future__ import annotations

import re
import warnings
from typing import Any, NamedTuple

import gymnasium
from gymnasium.utils.env_checker import check_env

from operant.envs.findings import Findings


class Rule(NamedTuple):
    """What a message is about, and what to say instead; nothing: it does not matter here."""

    pattern: str
    about: str
    sentence: str = ""


RULES = (
    Rule("different from the unwrapped|alternative render modes|Casting input x", "checker"),
    Rule("symmetric and normalized", "action bounds"),  # bounded actions are rescaled
    Rule("Box (observation|action) space m.* value is -?infinity", "action bounds"),  # ours tells
    Rule("truncates after 1 step", "end"),
    Rule("not equal although similar", "seeds"),
    Rule("maximum and minimum values are equal", "constant"),
    Rule(
        "low value is greater than",
        "spaces",
        "a Box has a `low` above its `high`; exchange them",
    ),
    Rule(
        r"`seed` function is dropped",
        "seed method",
        "the method `seed` is never called; `reset(seed=...)` seeds `self.np_random`",
    ),
    Rule(
        "`return_info`",
        "return_info",
        "reset has the argument `return_info` of the old API, which is never given; remove it",
    ),
    Rule(
        "`options` or `..kwargs` keyword",
        "options",
        "reset takes no `options`; write `def reset(self, *, seed=None, options=None)`",
    ),
    Rule(
        "default seed argument",
        "default seed",
        "reset has a default seed, so that every episode is the same; make it None",
    ),
    Rule(
        r"super\(\).reset\(seed=seed\)|_np_random",
        "np_random",
        "reset does not call `super().reset(seed=seed)`, so that `self.np_random` does not follow "
        "the seed; call it first",
    ),
    Rule(
        "step info are not equivalent",
        "info",
        "the same seed and action give different infos",
    ),
    Rule(r"[Dd]eterministic|not properly been updated", "seeds"),  # ours compares whole episodes
    Rule("[Oo]bs.*share an object", "alias", "observations share memory; return copies"),
    Rule("infos.* share an object", "info", "infos share an object; return a new dict each time"),
    Rule("`(terminated|truncated)` signal", "ends", "terminated and truncated should be bool"),
    Rule("reward", "reward", "the reward should be a float"),
    Rule("observation|obs returned", "dtype", "observations are not of the type of their space"),
)
ADVICE = {"np_random", "seed method", "return_info", "info", "ends", "default seed"}


def check_by_gymnasium(env: gymnasium.Env[Any, Any], found: Findings) -> None:
    """Add what Gymnasium's checker says, where nothing was found on the same subject."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_env(env, skip_render_check=True, skip_close_check=True)
            failure = ""
        except Exception as error:  # it raises errors of many types
            failure = " ".join(str(error).split())
    for warning in caught:
        if not issubclass(warning.category, DeprecationWarning):
            _add(re.sub(r"\x1b\[\d+m|WARN: ", "", str(warning.message)), found, fatal=False)
    if failure:
        _add(failure, found, fatal=True)


def _add(message: str, found: Findings, fatal: bool) -> None:
    unknown = Rule("", message, f"Gymnasium's checker: {message}")
    rule = next((rule for rule in RULES if re.search(rule.pattern, message)), unknown)
    if not rule.sentence:
        return
    if fatal and rule.about not in ADVICE:
        found.fault(rule.about, rule.sentence)
    else:
        found.advise(rule.about, rule.sentence)
