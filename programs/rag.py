"""Retrieval-augmented answering with a locked judge: retrieve, sample several answers, select one.

This is the program that a user of DSPy would write around a `Selector`. Use it or copy it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import dspy

from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import show_passage
from eldgr_dspy.errors import ArgumentError, settled
from eldgr_dspy.programs.consulting import awaitable
from eldgr_dspy.programs.inputs import to_passages
from eldgr_dspy.programs.selector import Selector


class RAG(dspy.Module):
    """Answer a question from what a search finds, with enough samples for a majority.

        rag = RAG(search, samples=5)
        pred = rag(question="...")
        pred.answer, pred.branch, pred.witness

    Attributes:
        respond: (context, question) -> reasoning, answer: a chain of thought, asked once a sample. A sample that cannot
            be parsed is a candidate without an answer, unless the selector's `on_error` is `raise`.
        select: The selector; its roles can have their own LMs.
    """

    def __init__(
        self,
        search: Callable[[str], Any],
        *,
        samples: int = 5,
        temperature: float = 1.0,
        selector: Selector | None = None,
    ) -> None:
        """Create the program.

        Args:
            search: Takes the question and returns what a `Selector` accepts as evidence: a prediction with `passages`,
                or a list of strings, mappings or objects with a text. Any DSPy retriever works. It may be async if the
                program is only awaited.
            samples: How many answers to sample, at least 1.
            temperature: Of the samples; above 0, or they are all the same.
            selector: Decides; a `Selector()` by default. Answers are sampled under its `answer_field`.

        Raises:
            ArgumentError: naming the argument and what was expected.
        """
        super().__init__()
        if not callable(search):
            raise ArgumentError(f"search must be a function or module of the question; got {search!r:.80}.")
        if type(samples) is not int or samples < 1:
            raise ArgumentError(f"samples must be a whole number of at least 1; got {samples!r:.80}.")
        if not temperature > 0:
            raise ArgumentError(f"temperature must be above 0, or all samples are the same; got {temperature!r}.")
        self.search = search
        self.samples = samples
        self.temperature = temperature
        select = selector or Selector()
        self.respond = dspy.ChainOfThought(f"context: list[str], question: str -> {select.answer_field}: str")
        self.select = select

    def forward(self, question: str) -> dspy.Prediction:
        """Return the selector's prediction, with the evidence as `passages` and the sampled answers as `pool`."""
        result = settled(
            self.search(question), "search", "call await rag.acall(...), or give a search that is not async"
        )
        passages = to_passages(result)
        pool = [self._sample(number, _shown(passages), question) for number in range(self.samples)]
        return self._with_pool(self.select(question=question, candidates=pool, evidence=passages), passages, pool)

    async def aforward(self, question: str) -> dspy.Prediction:
        """Return the selector's prediction as `forward` does; the samples are drawn at once."""
        passages = to_passages(await awaitable(self.search)(question))
        pool = await asyncio.gather(
            *(self._asample(number, _shown(passages), question) for number in range(self.samples))
        )
        chosen = await self.select.acall(question=question, candidates=pool, evidence=passages)
        return self._with_pool(chosen, passages, pool)

    def _sample(self, number: int, context: list[str], question: str) -> dspy.Prediction | None:
        try:
            return self.respond(context=context, question=question, config=self._config(number))
        except dspy.AdapterParseError:
            if self.select.on_error == "raise":
                raise
            return None

    async def _asample(self, number: int, context: list[str], question: str) -> dspy.Prediction | None:
        try:
            return await self.respond.acall(context=context, question=question, config=self._config(number))
        except dspy.AdapterParseError:
            if self.select.on_error == "raise":
                raise
            return None

    def _config(self, number: int) -> dict[str, Any]:
        """Return a rollout number for each sample: a portable way to n samples that caches do not merge into one."""
        return {"rollout_id": number, "temperature": self.temperature}

    def _with_pool(
        self, chosen: dspy.Prediction, passages: Sequence[Passage], pool: Sequence[dspy.Prediction | None]
    ) -> dspy.Prediction:
        answers = [None if sample is None else sample[self.select.answer_field] for sample in pool]
        return dspy.Prediction(**chosen.toDict(), passages=_shown(passages), pool=answers)


def _shown(passages: Sequence[Passage]) -> list[str]:
    return [show_passage(passage.title, passage.text) for passage in passages]
