"""The selector: EL-DGR as a DSPy module, with typed roles around one pure rule."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Literal

import dspy

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Reply
from eldgr_dspy.decision import Decision, adrive, drive
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.consulting import Said, aask, ask
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.roles import Deriver, Judge, Repairer
from eldgr_dspy.programs.scoring.candidates import (
    CandidateScores,
    Scorers,
    ascore_candidates,
    reasonings_of,
    score_candidates,
)
from eldgr_dspy.questions import Settings, require_one_of
from eldgr_dspy.replies import read_reply, require_reply
from eldgr_dspy.words import TASKS, Consult, Homogeneous, Policy, Preference, Role, Strictness, Task

if TYPE_CHECKING:
    from eldgr_dspy.channels.protocols import Reasoning, Scorer

OnError = Literal["abstain", "raise"]


class Selector(dspy.Module):
    """Decide which of several sampled answers ships, by Evidence-Locked Derive-Gate-Repair.

    Consensus ships, unless another answer carries a certificate and consensus does not. A judge is asked only where
    its answer can still matter.

        select = Selector(answer_field="response")
        pred = select(question=..., candidates=pool, evidence=passages)
        pred.response, pred.branch, pred.certified, pred.witness

    The roles are public attributes, each a module that may be given its own LM (`select.judge.set_lm(lm)`), compiled,
    or replaced by any module with the same inputs and outputs. They are unbound: the LM of `dspy.configure` or
    `dspy.context` is used where a role has none of its own. Replies are read by the adapter of the settings if there
    is one, else strictly; `StrictStreamListener` of `eldgr_dspy.programs.engines.strict` hears them in a stream. `save`
    keeps prompts and demonstrations; what is given here to the constructor has to be given again before `load`.

    Attributes:
        judge: (question, evidence, candidates) -> assessments, preferred, judge_rationale.
        deriver: (question) -> derivation_steps, derived_answer, consistency_check.
        repairer: (question, evidence) -> repaired_answer, repair_passage.
        settings: The choices of the rule; see `eldgr_dspy.questions.Settings`. No optimizer changes them.
        scorers: Who scores the candidates' reasoning, as given; none by default.
    """

    def __init__(
        self,
        *,
        task: Task = "retrieval",
        certificate: Policy = "folded",
        consult: Consult = "lazy",
        homogeneous: Homogeneous | None = None,
        preference: Preference = "global",
        derivation: Strictness = "bounded",
        on_error: OnError = "abstain",
        answer_field: str = "answer",
        scorers: "Scorer | Sequence[Scorer] | None" = None,
    ) -> None:
        """Create a selector with LM-backed roles.

        Args:
            task: `retrieval` (answers are certified by the evidence) or `arithmetic` (by a derivation); may be given
                a call. It is declared, never guessed.
            certificate, consult, homogeneous, preference, derivation: see `eldgr_dspy.questions.Settings`.
            on_error: What a reply that cannot be parsed, or has a value that it may not have, does: `abstain` (the role
                has said nothing) or `raise`. Transport errors are always raised. Of a scorer `abstain` takes whatever
                it raises, for the answer is decided by then: its scores are undefined.
            answer_field: The field of the candidates that answers, and under which the prediction gives its answer too.
            scorers: Who scores the candidates' reasoning once the answer is decided: an object with `score`, and
                perhaps `ascore`, which takes a list of `Reasoning` and returns a `StepTable` for each; or several. What
                they say changes the ranking inside a stratum, and never what ships. The first of several ranks. They
                are called from as many threads as the selector is.

        Raises:
            ArgumentError: naming the argument and the values that are known.
        """
        super().__init__()
        require_one_of("task", task, TASKS)
        require_one_of("on_error", on_error, ("abstain", "raise"))
        if type(answer_field) is not str or not answer_field.strip():
            raise ArgumentError(
                f"answer_field={answer_field!r:.80} names no field; give the one that answers, as text."
            )
        if answer_field in (*_FIELDS, "scores") and answer_field != "answer":
            raise ArgumentError(
                f"answer_field={answer_field!r} is a field of the decision; let the candidates answer in another."
            )
        self.task: Task = task
        self.settings = Settings(certificate, derivation, consult, homogeneous, preference)
        self.on_error: OnError = on_error
        self.answer_field = answer_field
        self.scorers = Scorers(scorers)
        self.judge: dspy.Module = Judge()
        self.deriver: dspy.Module = Deriver()
        self.repairer: dspy.Module = Repairer()

    def forward(
        self, question: str, candidates: Any, evidence: Any = None, task: Task | None = None
    ) -> dspy.Prediction:
        r"""Select one answer.

        Args:
            question: The question as asked.
            candidates: A list of strings, numbers, mappings or predictions, completions, or a prediction with
                completions. None is a candidate without an answer; a number answers by its shortest text, 4.0 by "4".
                A candidate's final answer is what it marks as such (`#### x`, `\boxed{}`, "the answer is"), else the
                whole text; in arithmetic the last number.
            evidence: A list of strings, or of mappings or objects with `text` or `long_text` and perhaps `title`; one
                string; or a prediction with `passages`. To a scorer None is no corpus at all, an empty list a corpus in
                which nothing was found.
            task: For this call, instead of the selector's own.

        Returns:
            A prediction with `answer` (also under `answer_field`), `branch`, `reason`, `certified`, `witness`,
            `consensus`, `preference`, `repair`, `tie`, `consulted`, `abstentions` and `ranking`, all plain JSON values;
            see `eldgr_dspy.decision.Decision`. `certified` is None, not False, where no certificate applies, as to a
            yes. With a scorer also `scores`: the table of each candidate in pool order (see
            `eldgr_dspy.channels.table.StepTable.to_json`), or several scorers' by name; inside a stratum `ranking` then
            goes by the tables' rewards instead of the judge's scalars, unless no reward is defined.

        Raises:
            ArgumentError: if an argument is not what is described here.
            dspy.LMError: if a call did not come through.
            dspy.AdapterParseError, ReplyError: if a reply is not what was asked for, and `on_error` is `raise`.
            Exception: what a scorer raises, if `on_error` is `raise`.
        """
        case = self._case(question, candidates, evidence, task)
        replies: dict[Role, Reply] = {}

        def consult(role: Role) -> Reply:
            said = ask(getattr(self, role), case.question.role_inputs(role))
            replies[role] = self._read(role, said, case)
            return replies[role]

        choice = drive(case.rule("eldgr")(case), consult)
        decision, texts = case.record(choice, replies), self._texts(case, evidence)
        return self._prediction(case, decision, replies, [self._score(one, texts) for one in self.scorers])

    async def aforward(
        self, question: str, candidates: Any, evidence: Any = None, task: Task | None = None
    ) -> dspy.Prediction:
        """Select one answer as `forward` does, awaiting the roles."""
        case = self._case(question, candidates, evidence, task)
        replies: dict[Role, Reply] = {}

        async def consult(role: Role) -> Reply:
            said = await aask(getattr(self, role), case.question.role_inputs(role))
            replies[role] = self._read(role, said, case)
            return replies[role]

        choice = await adrive(case.rule("eldgr")(case), consult)
        decision, texts = case.record(choice, replies), self._texts(case, evidence)
        return self._prediction(case, decision, replies, [await self._ascore(one, texts) for one in self.scorers])

    def _case(self, question: str, candidates: Any, evidence: Any, task: Task | None) -> Case:
        declared = self.task if task is None else task
        require_one_of("task", declared, TASKS)
        return Case(to_question(question, candidates, evidence, declared, self.answer_field), self.settings)

    def _read(self, role: Role, said: Said, case: Case) -> Reply:
        if said.error is not None and self.on_error == "raise":
            raise said.error
        read = require_reply if self.on_error == "raise" else read_reply
        return read(role, said.content, case.question.answers, len(case.question.passages))

    def _texts(self, case: Case, evidence: Any) -> "Sequence[Reasoning]":
        return reasonings_of(case.question, corpus=evidence is not None) if self.scorers else ()

    def _score(self, scorer: "Scorer", texts: "Sequence[Reasoning]") -> CandidateScores:
        try:
            return score_candidates(scorer, texts)
        except Exception as error:  # noqa: BLE001 - the answer is decided, and no scorer may lose it
            return self._unscored(error, len(texts))

    async def _ascore(self, scorer: "Scorer", texts: "Sequence[Reasoning]") -> CandidateScores:
        try:
            return await ascore_candidates(scorer, texts)
        except Exception as error:  # noqa: BLE001 - as in `_score`
            return self._unscored(error, len(texts))

    def _unscored(self, error: Exception, n: int) -> CandidateScores:
        if self.on_error == "raise":
            raise error
        return CandidateScores.undefined(error, n)

    def _prediction(
        self, case: Case, decision: Decision, replies: Mapping[Role, Reply], found: Sequence[CandidateScores]
    ) -> dspy.Prediction:
        values = {**plain(decision), self.answer_field: decision.answer}
        if found:
            values |= {"ranking": [*case.ranking(replies, found[0].rewards)], "scores": self.scorers.shown(found)}
        return dspy.Prediction(**values)


def plain(decision: Decision) -> dict[str, Any]:
    """Return a decision as plain JSON values, as predictions and `decisions.jsonl` have it."""
    values = {name: getattr(decision, name) for name in _FIELDS}
    witness = decision.witness
    return {
        **{name: list(value) if isinstance(value, tuple) else value for name, value in values.items()},
        "abstentions": dict(decision.abstentions),
        "witness": None if witness is None else {**asdict(witness), "flags": list(witness.flags)},
    }


_FIELDS = tuple(field.name for field in fields(Decision))
