"""The identity of code that decides: a hash of its syntax trees, without comments, docstrings and layout.

Trees differ between versions of Python where a field was added or is always empty, so no such field is hashed. Of a
user's rule or certificate also what it decides on small questions is hashed, which notices a change in what it imports.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import dspy

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import drive
from eldgr_dspy.errors import ArgumentError, EldgrError
from eldgr_dspy.programs.lms.lms import sub_modules
from eldgr_dspy.programs.run.fingerprints import digits
from eldgr_dspy.programs.run.role_calls import modules_of
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.own_certificates import OwnCertificate
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.rules import is_own, rule_named
from eldgr_dspy.words import Role

DECIDING = tuple(
    """
    answer_types answer_types.answers answer_types.base answer_types.choice answer_types.comparing
    answer_types.extraction answer_types.math answer_types.number answer_types.related answer_types.short
    base.child_processes base.differences base.named_objects base.structured certificates decision derivation
    derivation.amounts derivation.arithmetic derivation.independence derivation.quantities derivation.reach
    derivation.tracing errors matching.occurrences matching.text_keys matching.wholes programs.engines.json_objects
    programs.engines.reply_forms programs.engines.strict redaction rule.ballots rule.cases rule.certifying
    rule.consultations rule.derivations rule.evidence rule.named_judges rule.own_certificates rule.questions
    rule.ranking rule.reasons rule.refusals rule.replies rule.rules rule.voting showing signatures
    signatures.channels signatures.checks signatures.deriver signatures.judge signatures.repairer text.folding
    text.latex text.numbers text.reading text.sentence_ends text.stripping text.thinking words
    """.split()
)
"""The modules that read a question, an answer or a reply, and decide, with all that they import."""

ASKING = tuple(
    """
    formats.columns rule.lexical formats.rows rule.spans programs.calls programs.certifier programs.lms.consulting
    programs.engines.lenient programs.lms.fencing programs.heuristics programs.inputs programs.judges.autodspy
    programs.judges.bcrl programs.judges.counting_judges programs.judges.drm programs.judges.frames programs.judges.gar
    programs.judges.named programs.judges.repeated_judges programs.judges.swirl programs.lms.one_call
    programs.plain_values programs.repeated_deriver programs.roles programs.selector
    """.split()
)
"""The modules that make a role's question, and the roles that are asked, without all that they import."""

PACKAGE = "eldgr_dspy"

_NOT_OWN = frozenset({PACKAGE, "dspy", "__main__", *sys.stdlib_module_names})
_UNSTABLE = frozenset({"ctx", "kind", "type_comment", "type_params"})
_SOURCELESS = "certificate={!s} cannot be frozen, because Python finds no source of it; write it in a module."

_ANSWERS = ("Lyon", "Oslo", "Rome", "yes", None)
_EVIDENCE = ((), ("It was Lyon then.",), ("Rome", "and then Lyon"), ("It was Rome, and Rome is not Lyon.",))
_SILENT = Abstention("silent")
_SOUND = Derivation((Step("3 * 6", "18"),), "18", "18 / 6 = 3")


@cache
def package_identity() -> str:
    """Return the hash of `DECIDING` and `ASKING`, read and parsed once in a process."""
    root = Path(inspect.getfile(ArgumentError)).parent
    files = [root.joinpath(*name.split(".")) for name in (*DECIDING, *ASKING)]
    sources = [(file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_bytes() for file in files]
    return digits("".join(map(tree_identity, map(ast.parse, sources))).encode())


def identities(selector: Selector, rules: Sequence[str], judges: Mapping[str, dspy.Module]) -> dict[str, str]:
    """Return the identity of the package, and of each module of the user's with a rule, certificate, type or role."""
    code, certificate = {PACKAGE: package_identity()}, selector.settings.own
    modules = {
        rule.partition(":")[0]: f"rules={rule!r} cannot be frozen, because its module has no file; write one."
        for rule in filter(is_own, rules)
    }
    modules |= {} if certificate is None else {certificate.module: _SOURCELESS.format(certificate)}
    for module, fault in modules.items():
        try:
            code[module] = _module_identity(module)
        except (OSError, TypeError, KeyError) as error:
            raise ArgumentError(fault) from error
    for module in _own_modules(selector, judges):
        with suppress(OSError, TypeError, KeyError):  # made by a call, without a file
            code[module] = _module_identity(module)
    return code


def _own_modules(selector: Selector, judges: Mapping[str, dspy.Module]) -> set[str]:
    """Return the modules with the classes of a user's roles and answer type. A script has no name to find it by."""
    modules = [*modules_of(selector, judges).values(), *([selector.certifier] if selector.certifier else [])]
    parts = [part for module in modules for _, part in sub_modules(module, dspy.Module)]
    names = {kind.__module__ for part in [*parts, selector.type] for kind in type(part).__mro__}
    return {name for name in names if name.partition(".")[0] not in _NOT_OWN}


def classes_outside(classes: Mapping[str, str], code: Mapping[str, str]) -> dict[str, str]:
    """Return the classes of a role that are in no module whose code is stated, such as those of a script."""
    return {name: digits for name, digits in classes.items() if not any(name.startswith(f"{one}.") for one in code)}


def _module_identity(module: str) -> str:
    """Return the hash of a module; raises `OSError`, `TypeError` or `KeyError` if it has no file."""
    return tree_identity(ast.parse(inspect.getsource(sys.modules[module])))


def tree_identity(tree: ast.Module) -> str:
    """Return the hash of a syntax tree without docstrings."""
    return digits(_tree(tree).encode())


def _tree(node: object) -> str:
    """Return a node, a list of nodes or a value as text. A statement that is only a text does nothing, so it is out."""
    if isinstance(node, ast.AST):
        fields = {name: value for name, value in ast.iter_fields(node) if name not in _UNSTABLE}
        parts = (f"{name}={_tree(value)}" for name, value in fields.items() if value is not None and value != [])
        return f"{type(node).__name__}({','.join(parts)})"
    if isinstance(node, list):
        return f"[{','.join(_tree(one) for one in node if not _is_text(one))}]"
    return ascii(node)  # not repr: which characters it escapes differs between versions


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class _Trial(NamedTuple):
    """A question, and what each role would reply."""

    question: Question
    replies: Mapping[Role, Reply]


def _of_texts() -> list[_Trial]:
    """Three votes over towns, a yes and no answer, with each judge and a repair in the evidence or not."""
    trials = []
    for pool, passages, judge, offer in product(product(_ANSWERS, repeat=3), _EVIDENCE, (-1, 0, 2), ("Lyon", "Bern")):
        question = Question("Which?", "retrieval", pool, (), tuple(Passage("", text) for text in passages))
        verdict = Verdict(judge) if judge >= 0 and pool[judge] else _SILENT
        trials.append(_Trial(question, {"judge": verdict, "repairer": Repair(offer)}))
    return trials


def _of_sums() -> list[_Trial]:
    text = "A crate holds 3 jars. How many jars do 6 crates hold?"
    replies: tuple[Reply, ...] = (_SILENT, _SOUND, replace(_SOUND, check=""))
    pools = product(("9", "18", "$18", None), repeat=3)
    return [
        _Trial(Question(text, "arithmetic", pool), {"judge": Verdict(0) if pool[0] else _SILENT, "deriver": reply})
        for pool, reply in product(pools, replies)
    ]


def rule_decisions(rule: str, settings: Settings) -> dict[str, str]:
    """Return a hash of what a user's rule decides, including through modules that it imports."""
    if settings.own and settings.own.consulted:  # nobody is asked here
        settings = replace(settings, certificate="folded")
    decide = rule_named(rule)

    def decide_trial(trial: _Trial) -> object:
        roles: list[Role] = []

        def ask(role: Role) -> Reply:
            roles.append(role)
            return trial.replies.get(role, _SILENT)

        choice = drive(decide(Case(trial.question, settings)), ask)
        return roles, choice.branch, choice.answer

    return _decide_twice(decide_trial, [*_of_texts(), *_of_sums()], f"rules={rule!r}", "question and replies")


def certificate_decisions(own: OwnCertificate | None) -> dict[str, Any]:
    """Return a hash of what a user's certificate decides, including through modules that it imports."""
    if own is None:
        return {}
    if own.source is None:
        raise ArgumentError(_SOURCELESS.format(own))
    if own.consulted:  # nobody is asked here
        return {"certificate": {}}

    def certify(trial: _Trial) -> object:
        case = Case(trial.question, Settings(certificate=own))
        return [case.certified(answer) for answer in case.question.answers]

    what = f"certificate={own.name!r}"
    return {"certificate": _decide_twice(certify, _of_texts(), what, "answer, evidence and question")}


def _decide_twice(
    decide: Callable[[_Trial], object], trials: Sequence[_Trial], what: str, about: str
) -> dict[str, str]:
    """Return a hash of what is decided on trials, also in reversed order; an error counts by its name."""

    def outcome(trial: _Trial) -> object:
        try:
            return decide(trial)
        except EldgrError as error:
            return type(error).__name__

    first = [*map(outcome, trials)]
    if first != [*map(outcome, reversed(trials))][::-1]:
        raise ArgumentError(
            f"{what} must decide the same each time; it decided differently about the same {about}. Remove what is "
            "random, and any memory of earlier questions."
        )
    return {"decisions": digits(repr(first).encode())}
