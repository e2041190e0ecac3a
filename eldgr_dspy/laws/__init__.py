"""The twenty-one laws of the rule, each with its claim and how it is checked.

    LAWS                                      every law, in order; a number with several names has an entry for each
    LAW["default_is_consensus"]               one of them
    law.check(Subject(rule).settle(trial))    whether it applied to the trial; raises `LawBroken` if it is broken

Laws 18 to 20 are about the selector and are tried only on one. Those of answer types are in `eldgr_dspy.laws.of_types`.
Nothing in this folder draws an example or calls an LM. It uses only the standard library.
"""

from collections.abc import Mapping

from eldgr_dspy.laws.of_rules import OF_RULES
from eldgr_dspy.laws.trials import Law, LawBroken

__all__ = ["LAW", "LAWS", "Law", "LawBroken"]

_OF_SELECTORS = {
    "sync_equals_async_equals_batch_equals_replay": "However a selector is called (sync, async, in a batch, from a"
    " journal), the same replies give the same decision.",
    "no_lm_text_breaks_a_law": "Whatever text or JSON an LM returns, laws 1 to 8 hold of what ships.",
    "no_optimizer_breaks_a_law": "Compiling, saving, loading, copying a selector or swapping its LM changes no law.",
}
_FROM_18 = (Law(number, *law) for number, law in enumerate(_OF_SELECTORS.items(), 18))
LAWS: tuple[Law, ...] = tuple(sorted((*OF_RULES, *_FROM_18), key=lambda law: law.number))
LAW: Mapping[str, Law] = {law.name: law for law in LAWS}
