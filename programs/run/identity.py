"""The identity of code that decides: a hash of its syntax trees, without comments, docstrings and layout.

Trees differ between versions of Python where a field was added or is always empty, so no such field is hashed.
"""

import ast
import inspect
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.lms.lms import sub_modules
from eldgr_dspy.programs.run.role_calls import modules_of
from eldgr_dspy.programs.run.trial_decisions import SOURCELESS, digits
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.rules import is_own

DECIDING = tuple(
    """
    answer_types answer_types.answers answer_types.base answer_types.choice answer_types.comparing
    answer_types.extraction answer_types.math answer_types.number answer_types.related answer_types.short
    base.differences base.named_objects base.structured certificates decision derivation derivation.amounts
    derivation.arithmetic derivation.independence derivation.quantities derivation.reach derivation.tracing errors
    matching.occurrences matching.text_keys matching.wholes programs.engines.json_objects
    programs.engines.reply_forms programs.engines.strict redaction rule.ballots rule.cases rule.certifying
    rule.consultations rule.derivations rule.evidence rule.named_judges rule.own_certificates rule.questions
    rule.ranking rule.reasons rule.refusals rule.replies rule.rules rule.voting showing signatures
    signatures.assessor signatures.channels signatures.checks signatures.comparer signatures.deriver
    signatures.judge signatures.repairer signatures.slices text.folding text.numbers text.reading text.sentence_ends
    text.stripping text.thinking words
    """.split()
)
"""The modules that read a question, an answer or a reply, and decide, with all that they import."""

ASKING = tuple(
    """
    formats.columns rule.lexical formats.rows rule.spans programs.calls programs.certifier programs.lms.consulting
    programs.engines.lenient programs.lms.fencing programs.heuristics programs.inputs programs.judges.autodspy
    programs.judges.counting_judges programs.judges.drm programs.judges.frames programs.judges.gar
    programs.judges.named programs.judges.repeated_judges programs.judges.swirl programs.lms.one_call
    programs.plain_values programs.repeated_deriver programs.roles programs.selector
    """.split()
)
"""The modules that make a role's question, and the roles that are asked, without all that they import."""

PACKAGE = "eldgr_dspy"

_NOT_OWN = frozenset({PACKAGE, "dspy", "__main__", *sys.stdlib_module_names})
_UNHASHED = frozenset({"ctx", "kind", "type_comment", "type_params"})


@cache
def package_identity() -> str:
    """Return the hash of `DECIDING` and `ASKING`, read and parsed once in a process."""
    root = Path(inspect.getfile(ArgumentError)).parent
    files = [root.joinpath(*name.split(".")) for name in (*DECIDING, *ASKING)]
    sources = [(file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_bytes() for file in files]
    return digits("".join(map(tree_identity, map(ast.parse, sources))).encode())


def own_identities(selector: Selector, rules: Sequence[str], judges: Mapping[str, dspy.Module]) -> dict[str, str]:
    """Return the identity of each module of the user's that has a rule, the certificate, the answer type or a role."""
    code, certificate = dict[str, str](), selector.settings.own
    modules = {
        rule.partition(":")[0]: f"rules={rule!r} cannot be frozen, because its module has no file; write one."
        for rule in filter(is_own, rules)
    }
    modules |= {} if certificate is None else {certificate.module: SOURCELESS.format(certificate)}
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
    """Return the hash of a module that is loaded; raises OSError, TypeError or KeyError if it has no file."""
    return tree_identity(ast.parse(inspect.getsource(sys.modules[module])))


def tree_identity(tree: ast.Module) -> str:
    """Return the hash of a syntax tree without docstrings."""
    return digits(_tree(tree).encode())


def _tree(node: object) -> str:
    """Return a node, a list of nodes or a value as text. A statement that is only a text does nothing, so it is out."""
    if isinstance(node, ast.AST):
        fields = {name: value for name, value in ast.iter_fields(node) if name not in _UNHASHED}
        parts = (f"{name}={_tree(value)}" for name, value in fields.items() if value is not None and value != [])
        return f"{type(node).__name__}({','.join(parts)})"
    if isinstance(node, list):
        return f"[{','.join(_tree(one) for one in node if not _is_text(one))}]"
    return ascii(node)  # not repr: which characters it escapes differs between versions


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
