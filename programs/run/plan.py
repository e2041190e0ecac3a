"""The plan of a run, and of a collection: which files, which rules or samples, where to, and the limits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from hashlib import sha256
from inspect import isfunction
from pathlib import Path
from typing import Any

import dspy

from eldgr_dspy.answer_types import load_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.base.files import safe_name
from eldgr_dspy.decision import DEFAULT_RULES, RULES
from eldgr_dspy.errors import ArgumentError, brief
from eldgr_dspy.formats.rows import MAX_CANDIDATES
from eldgr_dspy.pools import SUFFIXES, pool_name
from eldgr_dspy.programs.requests.limits import allowed_questions
from eldgr_dspy.programs.run.recordings import Replays, recordings_in
from eldgr_dspy.redaction import redact_message
from eldgr_dspy.rule.named_judges import for_judges, require_judges
from eldgr_dspy.rule.rules import rule_named
from eldgr_dspy.words import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a run and of a collection.

    Attributes:
        limit: How many questions, of each pool; None for all. workers: how many are under way at once.
        max_failures: How many questions may fail before it stops: a count, or a share such as "5%".
        timeout: Seconds that a role may take for one question, or a sample, retries and pauses included.
        max_calls, max_cost: Requests and dollars that it may take, earlier sessions included, None for no limit.
        fresh: Start anew in a directory that holds a run.
    """

    limit: int | None = None
    workers: int = 1
    max_failures: int | str = 0
    timeout: float = 600.0
    max_calls: int | None = None
    max_cost: float | None = None
    fresh: bool = False

    def require_valid(self) -> None:
        """Raise `ArgumentError` for the first limit that is out of range."""
        require_count("workers", self.workers)
        require_amount("timeout", self.timeout)
        allowed_questions("max_failures", self.max_failures, 0)
        for name, require in (("limit", require_count), ("max_calls", require_count), ("max_cost", require_amount)):
            if (value := getattr(self, name)) is not None:
                require(name, value)


@dataclass(frozen=True, slots=True)
class Plan(Limits):
    """The plan of a run.

    Attributes:
        pools: Files to read. out: the run directory, or None for `runs/NAME[+NAME...]`.
        rules: Which rules decide.
        judges: Judges by name, in the place of the selector's judge. A rule that may ask one is run for each, as
            `RULE[NAME]`.
        replay: A journal of recorded consultations, used instead of calls; or several by the name of their judge, with
            the empty name for that of all roles. recorded_for: a pool whose recording counts for the pools of this run.
        max_abstentions: How many questions may have an unusable reply before the run stops, in the form of
            `max_failures`, None for no limit. Replayed replies and those of earlier sessions count.
        freeze: A rule frozen by `eldgr freeze`, which the run is checked against.
    """

    pools: Sequence[str | Path]
    out: str | Path | None = None
    rules: Sequence[str] = DEFAULT_RULES
    _: KW_ONLY
    judges: Mapping[str, dspy.Module] = field(default_factory=dict)
    replay: Replays = None
    recorded_for: str | None = None
    max_abstentions: int | str | None = None
    freeze: str | Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", rules_for(self.rules, self.judges))
        if others := recordings_in(self.replay).keys() - {"", *self.judges}:
            raise ArgumentError(f"replay must be for judges of this run; got {min(others)!r}. Name it in judges too.")
        if self.recorded_for is not None and not recordings_in(self.replay):
            raise ArgumentError(f"recorded_for={self.recorded_for!r} needs a recording; give replay too.")
        if isinstance(self.out, str) and "://" in self.out:  # `pathlib` would make an address a folder of this machine
            text = brief(redact_message(self.out))
            raise ArgumentError(f"out must be a directory on a disk; got {text}. Write to a disk, and copy the run.")
        self.require_valid()
        if self.max_abstentions is not None:
            allowed_questions("max_abstentions", self.max_abstentions, 0)


@dataclass(frozen=True, slots=True)
class Collection(Limits):
    """What to collect. `workers` are samples under way at once.

    Attributes:
        program: `MODULE:NAME` of a module, or of a function or class that makes one without arguments.
        devset: A file of questions, or `MODULE:LIST` of a list of `dspy.Example`.
        out: The file of the pool.
        n: Samples of a question. answer: the answer type of all questions.
        answer_field: The field of the program's answer.
        passages: The field of the passages that it retrieves: of its inputs or its prediction, or an input of one of
            its predictors. None looks for evidence, context and passages.
        temperature: Of the samples; None leaves the LM's own.
        columns: Whether the fields `confidence`, `logprobs`, `scores` and `tags` of a prediction are kept. One that a
            pool cannot have is left out and counted.
    """

    program: str
    devset: str
    out: str | Path
    n: int = 8
    answer: Task | AnswerType = "short"
    answer_field: str = "answer"
    passages: str | None = None
    temperature: float | None = None
    columns: bool = False
    workers: int = field(default=8, kw_only=True)

    def __post_init__(self) -> None:
        load_type(self.answer)
        require_count("n", self.n)
        self.require_valid()
        if self.temperature is not None:
            require_amount("temperature", self.temperature)
        if self.n > MAX_CANDIDATES:
            raise ArgumentError(f"n must be at most {MAX_CANDIDATES:,}; got {self.n:,}.")
        if not str(self.out).endswith(SUFFIXES):
            raise ArgumentError(f"out must end in one of {', '.join(SUFFIXES)}; got {str(self.out)!r}.")

    @property
    def task(self) -> Task:
        """The answer type as files state it."""
        return load_type(self.answer).name_in_files


def collected_folder(pool: Path) -> Path:
    """Return where `eldgr collect` keeps the samples of a pool."""
    return pool.with_name(f"{pool_name(pool)}.collected")


def rules_for(rules: Any, judges: Mapping[str, dspy.Module]) -> tuple[str, ...]:
    """Return the names of rules, checked; with judges that have names, a rule that may ask one is there for each."""
    if isinstance(rules, str):
        names = [name.strip() for name in rules.split(",")]
        raise ArgumentError(f"rules must be a list, such as {names!r}; got one text, {rules!r}.")
    if not rules:
        raise ArgumentError(f"rules must have at least one of {', '.join(RULES)}; got {rules!r}.")
    for index, rule in enumerate(rules):
        if not isinstance(rule, str):
            name = f"{rule.__module__}:{rule.__name__}" if isfunction(rule) else "MODULE:FUNCTION"
            remedy = f"Give a rule by its name, such as {name!r}."
            raise ArgumentError(f"rules[{index}] must be a string; got {type(rule).__name__}. {remedy}")
        rule_named(rule, "rules")
    require_judges(judges)
    return for_judges(rules, judges)


def require_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"{name} must be a whole number; got {value!r:.80} ({type(value).__name__}).")
    if value < 1:
        raise ArgumentError(f"{name} must be at least 1; got {value!r}.")


def require_amount(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ArgumentError(f"{name} must be a positive number; got {value!r:.80}.")


def out_of(plan: Plan) -> Path:
    """Return the run directory of a plan: its own, or `runs/NAME[+NAME...]`, NAME being the pools'.

    If other pools could have the same name, six digits of a hash of theirs follow.
    """
    if plan.out is not None:
        return Path(plan.out)
    names = [pool_name(Path(pool)) for pool in plan.pools]
    whole = "+".join(names)
    safe = safe_name(whole)
    if safe != whole or any("+" in name for name in names):
        digits = sha256("/".join(names).encode()).hexdigest()[:6]
        safe = f"{safe.encode()[:113].decode(errors='ignore')}-{digits}"
    return Path("runs") / safe
