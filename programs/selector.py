"""The selector: EL-DGR as a DSPy module, with typed roles around one pure rule."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

import dspy

from eldgr_dspy.answer_types import BUILT_IN, answer_type, load_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.base.named_objects import source_of
from eldgr_dspy.decision import Decision, Rule, adrive, drive
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.calls import SCORER, Calls, OnFailure, require_timeout, role_timeouts_of
from eldgr_dspy.programs.certifier import Certifier
from eldgr_dspy.programs.engines.lenient import LENIENT
from eldgr_dspy.programs.engines.strict import STRICT
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.lms.consulting import FAILURES, RoleOutput
from eldgr_dspy.programs.plain_decisions import plain, require_answer_field
from eldgr_dspy.programs.repeated_deriver import RepeatedDeriver
from eldgr_dspy.programs.roles import Deriver, Judge, Repairer
from eldgr_dspy.programs.rule_roles import later_roles, may_ask
from eldgr_dspy.programs.scoring.candidates import (
    Scorers,
    Tables,
    ascore_candidates,
    reasonings_of,
    score_candidates,
    undefined_tables,
)
from eldgr_dspy.programs.service.saved_state import CHOICES, Saved, SavedChoices
from eldgr_dspy.programs.service.service_log import log_silence
from eldgr_dspy.programs.service.threads import at_once, in_thread
from eldgr_dspy.programs.telemetry import watch
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import certificates_in, certifying, inputs_of, is_withheld, replies_in
from eldgr_dspy.rule.consultations import Abstention, Heard, Reply
from eldgr_dspy.rule.questions import Choices, Settings, require_one_of
from eldgr_dspy.rule.replies import read_reply, require_reply
from eldgr_dspy.rule.rules import finds, is_own, rule_given, rule_named
from eldgr_dspy.words import Consulted, Replies, Role, Task, is_role

if TYPE_CHECKING:
    from eldgr_dspy.channels.protocols import Reasoning, Scorer

OnError = Literal["abstain", "raise"]
Uncertified = Literal["consensus", "abstain"]


class Selector(Saved):
    """Decide which of several sampled answers ships, by Evidence-Locked Derive-Gate-Repair.

    Consensus ships, unless another answer carries a certificate and consensus does not. A judge is asked only if its
    answer can still matter.

        select = Selector(answer_field="response")
        pred = select(question=..., candidates=pool, evidence=passages)
        pred.response, pred.branch, pred.certified, pred.witness

    The roles are public attributes, each a module that may have its own LM (`select.judge.set_lm(lm)`), be compiled, or
    be replaced by any module with the same inputs and outputs. They are unbound: a role without its own LM uses that of
    `dspy.configure` or `dspy.context`. `StrictStreamListener` of `eldgr_dspy.programs.engines.strict` streams replies.
    Only roles that the rule may ask about the selector's own type are predictors to an optimizer. `save` keeps prompts,
    demonstrations and the choices that decide; `load` refuses them for a selector with other arguments.

    Attributes:
        judge: (question, evidence, candidates) -> assessments, preferred, judge_rationale.
        deriver: (question) -> derivation_steps, derived_answer, consistency_check.
        repairer: (question, evidence) -> repaired_answer, repair_passage.
        type: The answer type.
        settings: The choices of the rule. See `eldgr_dspy.rule.questions.Settings`. No optimizer changes them.
        certifier: Asks a certificate of your own that is awaited or asks an LM, or None for any other.
        scorers: Who scores the candidates' reasoning, as given; none by default.
    """

    def __init__(
        self,
        *,
        answer: Task | AnswerType | None = None,
        rule: "str | Rule" = "eldgr",
        settings: Settings | None = None,
        on_error: OnError = "abstain",
        on_failure: OnFailure = "raise",
        timeout: float | None = None,
        role_timeouts: Mapping[str, float] | None = None,
        replies: Replies = "strict",
        uncertified: Uncertified = "consensus",
        answer_field: str = "answer",
        scorers: "Scorer | Sequence[Scorer] | None" = None,
        **choices: Unpack[Choices],
    ) -> None:
        """Create a selector with LM-backed roles.

        Args:
            answer: The answer type: `short` (text, which the evidence certifies), `number` (which a derivation
                certifies), `choice` or `math`; or one of your own, as a value or as `module:name`. By default `short`;
                a run then takes pools of any type.
            rule: The rule that decides: a name, or a rule of your own as a generator function or `module:function`;
                see `eldgr_dspy.rule.rules`.
            settings: The choices that a rule leaves open, whole. By default `Settings()`.
            on_error: What happens if a reply cannot be parsed, or has a value that is not allowed: `abstain` (the role
                abstains) or `raise`. For a scorer `abstain` catches every error: its scores are undefined.
            on_failure: What happens if a call fails (no connection, refused, too late): `raise`, or `abstain` (the role
                abstains, and `failures` says why). A certificate whose call failed is inapplicable.
            timeout: Seconds for all calls about one question. A later one is a failure, and `math` answers not compared
                by then differ. If failures abstain, each call has an equal share of what is left.
            role_timeouts: Seconds by name for a role, `certificate`, `repair_certificate` or `scorer`, instead of that.
            replies: How replies are read: `strict` (one JSON object of exactly the fields) or `lenient` (see
                `eldgr_dspy.programs.engines.lenient`). An adapter of the settings comes first.
            uncertified: What ships if the decision is not certified: `consensus` (the rule's answer) or `abstain`
                (None). An answer to which no certificate applies ships. Branch and decision are the same.
            answer_field: The field of the candidates that holds the answer. The prediction has it too.
            scorers: Objects with `score`, and perhaps `ascore`, from a list of `Reasoning` to a `StepTable` each; the
                first ranks inside a stratum. None changes what ships.
            choices: Single settings by name, such as `certificate="token"`, in the place of those in `settings`:
                certificate, consult, derivation, homogeneous, preference, refusal, refusals.

        Raises:
            ArgumentError: naming the argument and the values that are known.
        """
        super().__init__()
        words = {"on_error": (on_error, OnError), "on_failure": (on_failure, OnFailure), "replies": (replies, Replies)}
        for name, (word, values) in {**words, "uncertified": (uncertified, Uncertified)}.items():
            require_one_of(name, word, get_args(values))
        require_answer_field(answer_field)
        require_timeout(timeout)
        self.role_timeouts = role_timeouts_of(role_timeouts)
        if unknown := choices.keys() - Choices.__annotations__.keys():
            raise TypeError(f"Selector has no argument {', '.join(map(repr, sorted(unknown)))}.")
        if not isinstance(settings := Settings() if settings is None else settings, Settings):
            raise ArgumentError(f"settings must be Settings(...); got {settings!r:.80}.")
        declared = settings.answer if answer is None else answer
        self.type: AnswerType = load_type("short" if declared is None else declared)
        self.rule, steps = rule_given(rule)
        self._unnamed = None if finds(self.rule, steps) else steps  # a pickle holds a rule that its name finds as that
        single: Any = choices
        self.settings = replace(settings, answer=None if declared is None else self.type, **single)
        self.on_error: OnError = on_error
        self.on_failure: OnFailure = on_failure
        self.replies: Replies = replies
        self.uncertified: Uncertified = uncertified
        self.timeout, self.answer_field = timeout, answer_field
        self.scorers = Scorers(scorers)
        own = self.settings.own
        self.certifier: dspy.Module | None = Certifier(own) if own is not None and own.consulted else None
        self.judge: dspy.Module = Judge()
        self.deriver: dspy.Module = RepeatedDeriver() if self.settings.derivation == "agreed" else Deriver()
        self.repairer: dspy.Module = Repairer()

    def forward(
        self,
        question: str,
        candidates: Any,
        evidence: Any = None,
        answer: Task | AnswerType | None = None,
        options: Any = (),
    ) -> dspy.Prediction:
        r"""Select one answer.

        Args:
            question: The question as asked.
            candidates: A list of strings, numbers, mappings or predictions, completions, or a prediction with
                completions. None is a candidate without an answer. A number's answer is its shortest text, 4.0 as "4".
                A candidate's final answer is what it marks as such (`#### x`, `\boxed{}`, "the answer is"), else the
                whole text (in arithmetic the last number). Judges that count ballots read columns too.
            evidence: A list of strings, or of mappings or objects with `text` or `long_text` and perhaps `title`; one
                string; or a prediction with `passages`. To a scorer None means no corpus, an empty list a corpus in
                which nothing was found.
            answer: The answer type for this call, instead of the selector's own.
            options: The texts to choose from, for an answer type that needs options.

        Returns:
            A prediction with `answer` (also under `answer_field`), `branch`, `reason`, `certified`, `witness`,
            `consensus`, `preference`, `repair`, `tie`, `consulted`, `abstentions` and `ranking`, all plain JSON values;
            see `eldgr_dspy.decision.Decision`. `failures` says for each role whose call did not come through why, and
            `votes` how many candidates give each answer. `certified` is None, not False, where no certificate applies,
            as to a yes. With a scorer also `scores`: the table of each candidate in pool order (see
            `eldgr_dspy.channels.step_table.StepTable.to_json`), or several scorers' by name; inside a stratum
            `ranking` then goes by the tables' rewards instead of the judge's scalars, unless no reward is defined.

        Raises:
            ArgumentError: if an argument does not fit this description.
            dspy.LMError, ConnectionError, TimeoutError: if a call did not come through, and `on_failure` is `raise`.
            CertificateError: if a certificate of your own raises or returns something else than a certificate.
            dspy.AdapterParseError, ReplyError: if a reply is not what was asked for, and `on_error` is `raise`.
            Exception: what a scorer raises, if `on_error` is `raise`.
        """
        calls = Calls(self.on_failure, self.timeout, self.role_timeouts, len(self.scorers))
        with watch(self, calls) as report:
            case = self._case(calls, self._kind(answer), question, candidates, evidence, options)
            replies_so_far: dict[Consulted, Heard] = {}

            def consult(name: Consulted) -> Heard:
                with self.reading():
                    output = calls.ask(name, *self.asking(case, name, replies_so_far))
                replies_so_far[name] = self.reply_of(name, output, case)
                return replies_so_far[name]

            choice = drive(certifying(self.rule_on(case))(case), consult)
            replies = replies_in(replies_so_far)
            decision, texts = case.record(choice, replies), self._texts(case, evidence)
            scores = [self._score(scorer, texts, calls) for scorer in self.scorers]
            return report(self._prediction(case, decision, replies, scores, calls), replies)

    async def aforward(
        self,
        question: str,
        candidates: Any,
        evidence: Any = None,
        answer: Task | AnswerType | None = None,
        options: Any = (),
    ) -> dspy.Prediction:
        """Do the same as `forward`, awaiting the roles."""
        calls, kind = Calls(self.on_failure, self.timeout, self.role_timeouts, len(self.scorers)), self._kind(answer)
        taking = in_thread if kind.pooled else at_once  # comparing answers may take long
        with watch(self, calls) as report:
            case = await taking(partial(self._case, calls, kind, question, candidates, evidence, options))
            replies_so_far: dict[Consulted, Heard] = {}

            async def consult(name: Consulted) -> Heard:
                with self.reading():
                    output = await calls.aask(name, *self.asking(case, name, replies_so_far))
                replies_so_far[name] = self.reply_of(name, output, case)
                return replies_so_far[name]

            choice = await adrive(certifying(self.rule_on(case))(case), consult, taking)
            replies = replies_in(replies_so_far)
            decision, texts = await taking(partial(case.record, choice, replies)), self._texts(case, evidence)
            scores = [await self._ascore(scorer, texts, calls) for scorer in self.scorers]
            return report(self._prediction(case, decision, replies, scores, calls), replies)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """Return the choices that `save` keeps, and the parameters of the roles that can be asked."""
        parameters = [pair for pair in super().named_parameters() if may_ask(pair[0], self.rule, self.type)]
        return [(CHOICES, SavedChoices("Selector", self.choices)), *parameters]  # loading compares the first first

    def set_lm(self, lm: Any) -> None:
        """Set the LM of every role, asked or not, and of a certificate that is a DSPy module."""
        parameters: list[Any] = [one for _, one in super().named_parameters() if isinstance(one, dspy.Module)]
        for predictor in parameters:
            predictor.lm = lm

    def choices(self) -> dict[str, Any]:
        """Return by name what decides what ships, and what `save` keeps: neither prompts nor LMs nor the timeout."""
        names = ("rule", "on_error", "on_failure", "replies", "uncertified", "answer_field")
        rule = self._unnamed or rule_named(self.rule)
        source: dict[str, Any] = {"rule_source": source_of(rule)} if is_own(self.rule) else {}
        choices = {"task": self.type.name_in_files, **{name: getattr(self, name) for name in names}}
        return {**choices, **source, **self.settings.to_json()}

    def rule_on(self, case: Case) -> Rule:
        """Return the selector's rule on a case."""
        return self._unnamed or case.rule(self.rule)

    def asking(
        self, case: Case, name: Consulted, replies: Mapping[Consulted, Heard]
    ) -> tuple[Any, Any, list[Consulted]]:
        """Return the module that is asked, a role's or the certifier, what it is told, and who may be asked after."""
        module = getattr(self, name) if is_role(name) else self.certifier
        later = later_roles(name, self.rule, case.type, replies, certifies=self.certifier is not None)
        return module, inputs_of(case, name, replies, module), later

    def reading(self) -> AbstractContextManager[Any]:
        """Read replies in the block as `replies` says, unless the settings have an adapter."""
        adapter = LENIENT if self.replies == "lenient" else STRICT
        return nullcontext() if dspy.settings.adapter is not None else dspy.context(adapter=adapter)

    def reply_of(self, name: Consulted, output: RoleOutput | Abstention, case: Case) -> Heard:
        """Return what was said as a rule sees it."""
        reply = output if isinstance(output, Abstention) else self._read(name, output, case)
        if isinstance(reply, Abstention):
            log_silence(name, reply)
        return reply

    def _read(self, name: Consulted, output: RoleOutput, case: Case) -> Heard:
        if output.error is not None and self.on_error == "raise":
            raise output.error
        if not is_role(name):
            return certificates_in(output.content)
        reader = require_reply if self.on_error == "raise" else read_reply
        return reader(name, output.content, case.question.answers, len(case.question.passages))

    def _kind(self, answer: Task | AnswerType | None) -> AnswerType:
        return self.type if answer is None or answer == self.type.name else answer_type(answer, "answer", BUILT_IN)

    def _case(self, calls: Calls, kind: AnswerType, question: str, pool: Any, evidence: Any, options: Any) -> Case:
        make = partial(to_question, columns=getattr(self.judge, "takes_ballot", False), comparisons=calls.comparisons)
        return Case(make(question, pool, evidence, kind, self.answer_field, options), self.settings)

    def _texts(self, case: Case, evidence: Any) -> "Sequence[Reasoning]":
        return reasonings_of(case.question, corpus=evidence is not None) if self.scorers else ()

    def _score(self, scorer: "Scorer", texts: "Sequence[Reasoning]", calls: Calls) -> Tables:
        try:
            return calls.within(SCORER, lambda one: score_candidates(one, texts), scorer)
        except Exception as error:  # noqa: BLE001 - the answer is decided, and no scorer may change that
            return self._without_scores(error, len(texts))

    async def _ascore(self, scorer: "Scorer", texts: "Sequence[Reasoning]", calls: Calls) -> Tables:
        try:
            return await calls.awithin(SCORER, lambda one: ascore_candidates(one, texts), scorer)
        except Exception as error:  # noqa: BLE001 - as in `_score`
            return self._without_scores(error, len(texts))

    def _without_scores(self, error: Exception, n: int) -> Tables:
        if self.on_error == "raise" and not (self.on_failure == "abstain" and isinstance(error, FAILURES)):
            raise error
        log_silence(SCORER, Abstention.failure(error))
        return undefined_tables(error, n)

    def _prediction(
        self,
        case: Case,
        decision: Decision,
        replies: Mapping[Role, Reply],
        scored: Sequence[Tables],
        calls: Calls,
    ) -> dspy.Prediction:
        answer = None if self.uncertified == "abstain" and is_withheld(case, decision) else decision.answer
        consulted = [role for role in decision.consulted if role not in calls.unasked]
        values = {**plain(decision), "consulted": consulted, "failures": calls.failures, "votes": case.votes()}
        values |= {"answer": answer, self.answer_field: answer}
        if scored:
            rewards = [table["reward"] for table in scored[0]]
            values |= {"ranking": [*case.ranking(replies, rewards)], "scores": self.scorers.by_name(scored)}
        return dspy.Prediction(**values)
