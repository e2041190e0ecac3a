"""What a role, the code and a run directory are known by: what is the same is continued, and nothing else."""

import ast
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import dspy
import pytest

import eldgr_dspy.programs.judges.counting_judges
import eldgr_dspy.programs.judges.repeated_judges  # noqa: F401 - so that every class of a role exists
from eldgr_dspy.base.differences import differences
from eldgr_dspy.base.files import replacing
from eldgr_dspy.errors import ArgumentError, JournalError, RunChangedError, RunLockedError
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate, rarer_collections
from eldgr_dspy.programs.run.fingerprints import describe, fingerprint
from eldgr_dspy.programs.run.freezes import write_freeze
from eldgr_dspy.programs.run.frozen import frozen_selector
from eldgr_dspy.programs.run.identity import ASKING, DECIDING, package_identity, tree_identity
from eldgr_dspy.programs.run.run_directory import RunDirectory, require_same
from eldgr_dspy.rule.consultations import Consultation
from tests.capitals import obliging, row, selector_with, write_pool
from tests.case_tables import each_case
from tests.house.package_files import sources
from tests.modules import Does
from tests.refusing import refusal, refuses


def wrap(signature: str) -> dspy.Module:
    """A custom role around a compiled predictor."""
    inner = dspy.ChainOfThought(signature)
    inner._compiled = True
    return Does(max, inner=inner)


def judge_with(**options: Any) -> dspy.Module:
    module = Judge()
    module.set_lm(dspy.LM("openai/x", **options))
    return module


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Does(max, k=0), Does(max, k=3)),  # a custom role with a plain attribute
        (wrap("question -> answer"), wrap("question -> reply")),
        (dspy.Predict("question -> preferred: int"), dspy.Predict("question -> preferred: Literal[0, 1]")),
        (judge_with(model_type="chat"), judge_with(model_type="responses")),
        (judge_with(min_tokens=1), judge_with(min_tokens=2)),
        (judge_with(extra_headers={"anthropic-version": "1"}), judge_with(extra_headers={"anthropic-version": "2"})),
    ],
)
def test_what_shapes_a_call_changes_the_fingerprint(one: dspy.Module, other: dspy.Module) -> None:
    assert fingerprint(describe(one)) != fingerprint(describe(other))


def test_another_key_does_not_change_it_and_an_option_of_the_adapter_does() -> None:
    headers = {"anthropic-version": "2023-06-01"}
    one, other = (describe(judge_with(api_key=f"key-of-{key}", extra_headers=headers)) for key in ("one", "another"))
    assert fingerprint(one) == fingerprint(other)
    with dspy.context(adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
        without = describe(Judge())
    with dspy.context(adapter=dspy.ChatAdapter()):
        assert fingerprint(describe(Judge())) != fingerprint(without)


SECRET = "q7-canary-12345"


@each_case("run", "credentials of a role")
def test_no_credential_is_in_the_journal_whatever_it_is_called(options: dict[str, Any], tmp_path: Path) -> None:
    # hazard 101
    details = describe(judge_with(**options))
    with RunDirectory(tmp_path) as run:
        run.claim_role("judge", details)
    assert SECRET not in (tmp_path / "journal.jsonl").read_text(encoding="utf-8") + repr(details)
    assert "***" in repr(details["lm"])
    settings = details["lm"]["settings"]
    assert settings.get("max_tokens") == options.get("max_tokens")
    assert "max_tokens" not in options or settings["api_base"] == "http://***@127.0.0.1/v1"
    assert ("127.0.0.1" in settings.get("api_base", "")) == ("api_base" in options)
    assert fingerprint(details) == fingerprint(describe(judge_with(**options)))


def test_a_long_text_is_shown_around_its_first_difference_and_what_one_side_lacks_is_one_line() -> None:
    (line,) = differences({"text": "a" * 300 + "b"}, {"text": "a" * 300 + "c"})
    assert "b" in line and 'c"' in line
    assert differences({"lm": None}, {"lm": {"a": 1, "b": 2}}) == ['lm: (absent) -> {"a": 1, "b": 2}']


# -- the identity of code: it changes with what decides, and with nothing else --
ROOTS = (
    "decision certificates rule.rules rule.cases rule.certifying rule.own_certificates rule.refusals rule.derivations "
    "rule.replies text.reading text.thinking text.stripping text.folding text.numbers answer_types signatures "
    "programs.engines.strict"
).split()
"""What reads and decides: with each room in `ROOTS` all of its modules are meant."""


@cache
def modules() -> dict[str, Path]:
    """The file of each module, by its name below the package."""
    return {name.removeprefix("eldgr_dspy."): path for path, name in sources()}


def imports_of(module: str) -> Iterator[str]:
    """The modules of the package that one imports, wherever in its text."""
    for node in ast.walk(ast.parse(modules()[module].read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("eldgr_dspy."):
            name = node.module.removeprefix("eldgr_dspy.")
            yield name
            yield from {f"{name}.{one.name}" for one in node.names} & modules().keys()


def test_the_list_holds_everything_that_reading_and_deciding_import() -> None:
    """Add a module that is lacking to `DECIDING`: a change of it may then change a decision."""
    names = {name for name in modules() for root in ROOTS if f"{name}.".startswith(f"{root}.")}
    result = set[str]()
    while names:
        result |= names
        names = {one for name in names for one in imports_of(name)} - result
    assert sorted(DECIDING) == sorted(result)


def test_the_list_holds_every_module_with_a_role() -> None:
    def below(kind: type[object]) -> Iterator[type[object]]:
        for one in kind.__subclasses__():
            yield one
            yield from below(one)

    homes = {kind.__module__.removeprefix("eldgr_dspy.") for kind in below(dspy.Module)} & modules().keys()
    roles = {name for name in homes if not name.startswith(("programs.scoring.", "training."))}
    assert roles - {"programs.sampled", "programs.service.saved_state"} <= {*ASKING}
    assert {*ASKING} <= modules().keys()


@pytest.mark.parametrize("module", [*DECIDING, *ASKING])
def test_a_constant_or_an_operator_counts_and_a_comment_or_a_docstring_does_not(module: str) -> None:
    source = modules()[module].read_text(encoding="utf-8")
    tree = ast.parse(source)
    identity = tree_identity(tree)
    assert tree_identity(ast.parse(source.replace("\n", "\r\n") + "\n# One comment more.\n")) == identity
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is not ...:
            node.value.value = "Other words."
    assert tree_identity(tree) == identity
    nodes = list(ast.walk(tree))
    for operation in [node for node in nodes if isinstance(node, ast.BinOp)][:1]:
        original, operation.op = operation.op, ast.MatMult()
        assert tree_identity(tree) != identity
        operation.op = original
    for comparison in [node for node in nodes if isinstance(node, ast.Compare)][:1]:
        was, comparison.ops = comparison.ops, [ast.LtE(), *comparison.ops[1:]]
        assert (tree_identity(tree) != identity) == (not isinstance(was[0], ast.LtE))
        comparison.ops = was
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for constant in [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings][-1:]:
        constant.value = "another"
        assert tree_identity(tree) != identity


def test_the_fields_that_later_versions_of_python_add_are_not_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """3.12 adds `type_params`, and whoever parses with `type_comments=True` has these."""
    source = "class A:\n    def f(self, x: int = 1) -> str:\n        return u'a'\n"
    identity = tree_identity(ast.parse(source))
    for kind in (ast.ClassDef, ast.FunctionDef):
        monkeypatch.setattr(kind, "_fields", (*kind._fields, "type_params", "of_the_future"))
        monkeypatch.setattr(kind, "type_params", [], raising=False)
        monkeypatch.setattr(kind, "of_the_future", None, raising=False)
    for text in (source, source.replace("u'a'", "'a'")):
        assert tree_identity(ast.parse(text)) == identity


def test_each_listed_file_is_read_once_a_process_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a service starts quickly, and a change in another file, such as the report, changes no identity."""
    read = list[Path]()
    read_bytes = Path.read_bytes

    def noting(path: Path) -> bytes:
        read.append(path.resolve())
        return read_bytes(path)

    package_identity.cache_clear()
    monkeypatch.setattr(Path, "read_bytes", noting)
    freeze = write_freeze(heuristic_selector(), ["eldgr"], tmp_path / "rule.freeze.json")
    for _ in range(3):
        frozen_selector(freeze.path)
    code = [path for path in read if path.suffix == ".py"]
    assert sorted(code) == sorted(modules()[name] for name in (*DECIDING, *ASKING))


# -- a run directory belongs to one process at a time, and is swept of what a killed one left behind --
def test_what_a_killed_process_was_writing_is_swept_and_nothing_else_nor_while_it_is_in_use(tmp_path: Path) -> None:
    half = replacing(tmp_path / "summary.json")
    half.__enter__().write(b"half")  # and never left, as in a process that is killed
    others = {".lock", "journal.jsonl", "summary.json", "notes.tmp", ".notes.tmp", ".0123.tmp"}
    for name in others:
        (tmp_path / name).touch()
    assert len(list(tmp_path.iterdir())) == len(others) + 1
    with RunDirectory(tmp_path):
        assert {path.name for path in tmp_path.iterdir()} == others
    with RunDirectory(tmp_path), replacing(tmp_path / "summary.json") as out:
        refuses(RunLockedError, "another process is writing to this run; wait for it, or give", RunDirectory, tmp_path)
        out.write(b"whole")
    assert (tmp_path / "summary.json").read_bytes() == b"whole"


def test_the_first_statement_stands_and_another_is_refused_with_its_difference(tmp_path: Path) -> None:
    """What is not a role has no address."""
    for _ in range(2):
        with RunDirectory(tmp_path) as directory:
            directory.claim(("pool", "p", {"rows": 1}))
            assert directory.states("pool", "p")
    with RunDirectory(tmp_path) as directory:
        refuses(RunChangedError, r"rows: 1 -> 2\n", directory.claim, ("pool", "p", {"rows": 2}))
        assert (tmp_path / "journal.jsonl").read_text().count("\n") == 1
        directory.claim(("settings", "rule", {"host": "a"}))
        refuses(RunChangedError, 'host: "a" -> "b"', directory.claim, ("settings", "rule", {"host": "b"}))


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").touch()
    for out in (tmp_path / "p.jsonl" / "x", tmp_path / "p.jsonl"):
        refuses(ArgumentError, r"^out='.*p\.jsonl.*' cannot be a directory \(.*\); give another\.$", RunDirectory, out)


DETAILS = {"module": "M", "lm": {"model": "m", "settings": {"temperature": 0.0}}, "demos": [["a", None]]}


@pytest.mark.parametrize("made_by", ["0123456789abcdef", None])
def test_a_call_of_a_role_that_is_not_stated_is_refused(tmp_path: Path, made_by: str | None) -> None:
    entry = Consultation("p", "q1", "judge", "abstained", "why", fingerprint=fingerprint(DETAILS), calls=1)
    with RunDirectory(tmp_path) as directory:
        directory.claim(("role", "judge", DETAILS))
        directory.journal.append(entry)
        directory.journal.append(Consultation("p", "q1", "deriver", "abstained", "why", recorded=True))
    with RunDirectory(tmp_path) as directory:
        directory.journal.append(Consultation("p", "q2", "judge", "failed", "why", fingerprint=made_by, calls=1))
    for _ in range(2):  # refused, it lets go of the lock
        message = rf"journal\.jsonl, line 4: this journal states no judge with fingerprint={made_by!r}"
        refuses(JournalError, message, RunDirectory, tmp_path)
    (tmp_path / "summary.json").touch()
    RunDirectory(tmp_path, fresh=True).__exit__()
    assert not (tmp_path / "summary.json").exists()  # of the run that was set aside


# -- where a role is asked --
def lm_at(address: str, model: str = "m", **settings: Any) -> dict[str, Any]:
    return {"model": model, "model_type": "chat", "settings": {"api_base": address, "temperature": 0.0, **settings}}


@each_case("run", "addresses of a role", lm_at=lm_at)
def test_a_role_at_another_address_is_the_same_and_stated_once_asked(tmp_path: Path, before: Any, now: Any) -> None:
    for lm, asks, roles in ((before, True, [before]), (now, False, [before]), (now, True, [before, now])):
        with RunDirectory(tmp_path) as directory:
            require_same(tmp_path, directory.journal.heads, [("role", "judge", {"module": "M", "lm": lm})])
            for _ in range(2 * asks):
                directory.claim_role("judge", {"module": "M", "lm": lm})
        with RunDirectory(tmp_path) as directory:
            assert [head["details"]["lm"] for head in directory.journal.heads] == roles


@each_case("run", "changed lms of a role", lm_at=lm_at)
def test_whatever_else_is_of_an_lm_is_not_an_address(tmp_path: Path, before: Any, now: Any) -> None:
    with RunDirectory(tmp_path) as directory:
        directory.claim_role("judge", {"module": "M", "lm": before})
    head = ("role", "judge", {"module": "M", "lm": now})
    with RunDirectory(tmp_path) as directory:
        sentence = refusal(partial(require_same, tmp_path, directory.journal.heads, [head]), RunChangedError)
        assert "started with another role 'judge'" in sentence and "api_base" not in sentence
        refuses(RunChangedError, "another role 'judge'", directory.claim_role, *head[1:])


# -- a run opens each file once, a pool twice (checked whole before the first call), and looks for cycles less often --
_COUNTS: list[Counter[str]] = []  # the count under way; a hook of Python's stays until the process ends


def _count(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _COUNTS and isinstance(arguments[0], str | os.PathLike):
        _COUNTS[-1][Path(arguments[0]).name] += 1


def test_each_file_is_opened_once_also_when_the_run_is_resumed(tmp_path: Path) -> None:
    """A result has a temporary name until it is whole."""
    sys.addaudithook(_count)
    pool, out = write_pool(tmp_path / "capitals.jsonl", map(row, range(8))), tmp_path / "run"
    for _ in range(2):
        _COUNTS.append(Counter())
        try:
            evaluate(selector_with(obliging)[0], Plan([pool], out, workers=3, max_calls=1_000))
        finally:
            counts = _COUNTS.pop()
        names = {path.name for path in [*out.iterdir(), pool]}
        assert sum(n for name, n in counts.items() if name.endswith(".tmp")) == 5
        opens = {name: n for name, n in counts.items() if name in names}
        assert opens == {"capitals.jsonl": 2, "journal.jsonl": 1, ".lock": 1}


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_cycles_are_looked_for_less_often_and_afterwards_as_before_also_after_two_runs_at_once() -> None:
    for error in (None, ZeroDivisionError()):
        gc.set_threshold(700, 9, 8)
        with suppress(ZeroDivisionError), rarer_collections():
            most, *others = gc.get_threshold()
            assert (most > 10_000, others) == (True, [9, 8])
            if error:
                raise error
        assert gc.get_threshold() == (700, 9, 8)
    for set_by_user in ((0, 10, 10), (10**6, 5, 5)):  # switched off, rarer still
        gc.set_threshold(*set_by_user)
        with rarer_collections():
            assert gc.get_threshold() == set_by_user
        assert gc.get_threshold() == set_by_user

    gc.set_threshold(700, 10, 10)
    first, second = ExitStack(), ExitStack()
    first.enter_context(rarer_collections())
    second.enter_context(rarer_collections())
    first.close()
    assert gc.get_threshold()[0] > 10_000
    second.close()
    assert gc.get_threshold() == (700, 10, 10)
