"""Answers that are compared in pairs: a class is what `alike` connects within a pool."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import ClassVar

from eldgr_dspy.answer_types.base import AnswerType, Grouping, truth
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.matching.text_keys import AnswerClass


class Related(AnswerType):
    """A type that says of two answers whether they are alike.

    Answers that `read` gives one key are one answer. `alike` must be symmetric. It must also be transitive, unless
    `connects` is set: then a class is a connected component of the pool's answers. A class has the key of its earliest
    answer.

    Attributes:
        connects: Whether answers that are alike only through others are one class.
    """

    pooled = True
    connects: ClassVar[bool] = False

    @abstractmethod
    def alike(self, one: str, other: str) -> bool:
        """Return whether two answers of different keys belong together."""

    def joins(self, answer: str, members: Sequence[str]) -> bool:
        """Return whether a later answer, such as a repair, joins a class: by default if it is like any member."""
        return any(self.alike(answer, member) for member in members)

    def components(self, answers: Mapping[str, str]) -> list[list[str]]:
        """Return the classes of a pool's answers, given by key in pool order: lists of keys, each in pool order.

        Raises:
            ArgumentError: `alike` is not symmetric; or not transitive, and `connects` is not set. It names the answers.
        """
        place = {key: index for index, key in enumerate(answers)}
        group = {key: [key] for key in answers}
        for one, other in combinations(answers, 2):
            if group[one] is not group[other] and self._alike(answers[one], answers[other]):
                union = sorted([*group[one], *group[other]], key=place.__getitem__)
                group.update(dict.fromkeys(union, union))
        components = [keys for key, keys in group.items() if keys[0] == key]
        if not self.connects:
            self._require_transitive(answers, components)
        return components

    def grouping(self, answers: Sequence[str | None]) -> Grouping:
        """Return the answers of a pool in classes; raises as `components` does."""
        own_classes = [self.class_of(answer) for answer in answers]
        classes: dict[str, AnswerClass] = {}
        texts: dict[str, str] = {}
        for class_, answer in zip(own_classes, answers, strict=True):
            if class_ is not None and answer is not None:
                classes.setdefault(class_.key, class_)
                texts.setdefault(class_.key, answer)
        components = self._parts(texts)
        class_by_key = {key: classes[keys[0]] for keys in components for key in keys}

        def class_of(answer: str | None) -> AnswerClass | None:
            own = self.class_of(answer)
            if own is None or answer is None or own.key in class_by_key:
                return own and class_by_key[own.key]
            matches = (keys[0] for keys in components if self._joins(answer, [texts[key] for key in keys]))
            return classes[first] if (first := next(matches, None)) else own

        return Grouping(tuple(class_ and class_by_key[class_.key] for class_ in own_classes), class_of)

    def _joins(self, answer: str, members: Sequence[str]) -> bool:
        return truth(self.joins(answer, members), lambda: f"{self.name}.joins({answer!r:.60}, ...)")

    def _parts(self, texts: Mapping[str, str]) -> Sequence[Sequence[str]]:
        value: object = self.components(texts)
        parts = value if isinstance(value, Sequence) and all(isinstance(keys, list | tuple) for keys in value) else ()
        keys = [key for part in parts for key in part]
        if not (all(type(key) is str for key in keys) and sorted(keys) == sorted(texts) and all(parts)):
            raise ArgumentError(
                f"{self.name}.components(answers) must return lists of the keys of the answers, each key in one of "
                f"them; got {value!r:.80} for {[*texts]!r:.80}."
            )
        return parts

    def _alike(self, one: str, other: str) -> bool:
        alike = truth(self.alike(one, other), lambda: f"{self.name}.alike({one!r:.60}, {other!r:.60})")
        back = truth(self.alike(other, one), lambda: f"{self.name}.alike({other!r:.60}, {one!r:.60})")
        if alike != back:
            raise ArgumentError(
                f"{self.name}.alike must be symmetric; alike({one!r:.60}, {other!r:.60}) is {alike}, and the other way "
                f"round it is {back}. Compare both ways."
            )
        return alike

    def _require_transitive(self, answers: Mapping[str, str], components: Sequence[Sequence[str]]) -> None:
        for keys in components:
            for one, other in combinations(keys, 2):
                if not self.alike(answers[one], answers[other]):
                    raise ArgumentError(
                        f"{self.name}.alike must be transitive; {answers[one]!r:.60} and {answers[other]!r:.60} are "
                        "alike through other answers, and not themselves. Set connects=True for classes of all that "
                        "is connected."
                    )
