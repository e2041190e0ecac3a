"""A choice: one of the options that the question gives, by its letter or by its text.

An option is certified if its text occurs in the evidence. The certificate of an option that is part of another one, as
"Paris" is of "Paris, Texas", is inapplicable, and so is that of an option about the others ("None of the above").
"""

import re
from collections.abc import Sequence
from itertools import chain, repeat
from string import ascii_uppercase
from unicodedata import normalize

from eldgr_dspy.answer_types.base import AnswerType, Certifying, QuestionView, require_gold, require_options
from eldgr_dspy.answer_types.short import normalise
from eldgr_dspy.certificates import Certificate, Evidence, Passage, certify
from eldgr_dspy.matching.text_keys import AnswerClass, short_class, text_key
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import Form, Policy

OPTIONS_BELOW = "\nOptions:\n"  # between a question and its options, where roles see it
_LEAD = (
    r"(?i:(?:therefore|thus|hence|so)\b,?\ )?(?i:(?:it\ (?:is|must\ be)|it's|i\ think)\ )?"
    r"(?i:(?:the\ )?(?:(?:correct|right|best|final|selected|chosen)\ )?(?:option|choice|answer|letter)(?:\ is|:)?\ )?"
)
_LETTER = re.compile(
    rf"""{_LEAD}[(\[]?(?P<letter>[A-Za-z])[)\]]?
    (?: [.:)]? \Z
      | [)\]]?[.:,]?\s(?i:because|since|as(?!\ well\b)|for(?!-)|due\ to|given\ (?:that|the)
        |(?<=[.:,)\]]\s)(?:due|given)|which|so(?!-|\ (?:far|many|much)\b)|is\ (?:the\ )?(?:correct|right|best|answer)
        |based\ on|according\ to|\(because|rather\ than|instead\ of|(?:\(|(?<=,\s))not(?!-|\sonly)
        |(?:explanation|reason(?:ing)?|rationale|justification)(?=\s?:))\b
      | (?: (?P<mark>[)\]][.:]? | [.:)]) | , | \s[-–—] | (?=\s) ) \s*+ (?P<text>.+) )
    | (?P<before>.+?\S)(?:\s*[(\[](?:[Oo]ption\ )?|,?\s+(?:which\ is\ )?[Oo]ption\ [(\[]?)
        (?P<behind>[A-Z])[)\]]?\.?\Z""",
    re.VERBOSE | re.DOTALL,
)
# Where the reason begins behind an option in full.
_REASON = re.compile(
    r",?\s(?:because|since|as\s(?:it|this|the)|rather\sthan|instead\sof|(?:(?<=,\s)|\()not(?!\sonly))\b", re.IGNORECASE
)
# What follows an option's text where a sentence about it goes on.
_OWN_REASON = (
    r"(?:(?:[,;:(]|\s(?:is|because|since|as)\b)(?!\s*(?:not|wrong|incorrect|false)\b)"
    r"|(?:\s(?:rather\sthan|instead\sof)|(?:,\s|\s\()not)\s(?!only\b|right\b|correct\b))"
)
# As in "B. I hope it is correct.", without a letter of another option.
_REMARK = re.compile(
    r"(?:I hope|I(?:['’]m| am) (?:\w+ )?(?:sure|confident|certain)|This is (?:the )?(?:correct|right|best))\b[^A-Z]*\Z"
)
_DENIALS = frozenset(
    "not no never neither nor wrong incorrect false isnt arent doesnt cant cannot excluded eliminated fails hardly"
    " unlikely unsure uncertain".split()
)
# What says in a sentence which option is meant.
_SENTENCE = re.compile(
    r"""\b(?: (?i:(?:option|choice|answer)\ [(\[*]*+) ([A-Z])\b [)\]*]*+
            (?i:\ (?:is|would\ be)\ (?:the\ )?(?:most\ )?(?:correct|right|best|appropriate|likely|answer))
      | (?<![A-Z],\ )(?<!\bto\ )(?<!\b[Ii]f\ )([A-Z])[)\]*]*+\ (?i:is\ (?:the\ )?(?:correct|right|best))\b(?!\ known)
      | (?i:I(?:\ would|'d|\ will|'ll)?\ (?:choose|pick|select|go\ with|answer|say)\ (?:option\ )?[(\[*]*+) ([A-Z])\b )
      | (?<!\b[Ww]hy\ )(?<!\b[Ii]f\ )(?<!\bor\ )
        (?i:not\ (?:option\ )?[(\[*]*+)[A-Z]\b[)\]*]*+,?(?i:\ but\ (?:option\ )?[(\[*]*+) ([A-Z])\b
      | (?i:my\ (?:choice|pick)\ is\ (?:option\ )?[(\[*]*+) ([A-Z])\b
      | (?:答案|选择?)\s?[是为选]?\s?[:：]?[\s*(（]*+([A-Z])(?![A-Za-z])""",
    re.VERBOSE,
)
_NEGATION = re.compile(
    r"""(?:n['’]t|\b(?:not|neither|nor))\b
    (?>(?:(?!\b(?:but|so|and|because|since|thus|hence|therefore|while)\b)[^.,:;!?()\n–—])*)\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_LINE = re.compile(r"[\s*_`#>]*+[(\[]?([A-Z])(?:[)\].:*_`]++(?:\s[^\n]*+)?)?\s*+")
_ABOUT_OTHERS = frozenset(
    map(text_key, ("none", "none of the above", "none of these", "all of the above", "all of these", "both", "neither"))
)
_NO_OPTION = Certificate(False, "the answer is not one of the options")
_ABOUT_OPTIONS = Certificate(None, "the option is about the other options, which an occurrence does not support")
_PART_OF_ANOTHER = Certificate(None, "the option is part of another option, so an occurrence does not tell them apart")


class Choice(AnswerType):
    """One of the options of a question, scored by accuracy.

    An answer is the option that it names: by its letter in the order of the options ("B", "(b)", "option B"), by its
    text, or by both ("B. Doha"), which must then agree. A letter that is itself the text of an option is read as text.
    Any other answer is short text of its own class, which nothing certifies.
    """

    name = "choice"
    way = "evidence"
    scores = ("accuracy",)
    needs_options = True
    example_options = ("Doha", "Dubai", "Dubai Marina", "Riyadh", "None of the above")

    def __init__(self, options: Sequence[str] = ()) -> None:
        self.options = tuple(options)
        self._classes = [short_class(option) for option in self.options]

    def of(self, question: QuestionView) -> "Choice":
        require_options(self, question.options)
        return Choice(question.options)

    def shown_question(self, question: QuestionView) -> str:
        """Return the question with its options below, each behind its letter."""
        marks = chain((f"{letter}." for letter in ascii_uppercase), repeat("-"))
        lines = (f"{mark} {option}" for mark, option in zip(marks, question.options, strict=False))
        return question.text + OPTIONS_BELOW + "\n".join(lines)

    def read(self, answer: str) -> AnswerClass | None:
        """Return the class of the option that an answer names, or else of the answer as short text."""
        index = self.index(answer)
        return short_class(answer) if index is None else self._classes[index]

    def index(self, answer: str) -> int | None:
        """Return the place of the option that an answer names, from 0; None if it names none or two."""
        by_text = self._by_text(answer)
        if by_text is None and (reason := _REASON.search(answer)):
            by_text = self._by_text(answer[: reason.start()])
        if by_text is not None:
            return by_text
        match = _LETTER.match(strip_answer(normalize("NFKC", answer).replace("*", "").replace("__", "")))
        if match is None:
            return None
        if (place := ascii_uppercase.index((match["letter"] or match["behind"]).upper())) >= len(self.options):
            return None
        text = match["text"] or match["before"]
        own = re.match(rf"{re.escape(self.options[place])}{_OWN_REASON}", text or "", re.I)
        if text is None or own or self._by_text(text) == place:
            return place
        return place if match["mark"] and self._speaks_of(place, text) else None

    def unmarked(self, text: str) -> tuple[str, Form]:
        """Return the letter that a sentence says is right, or a first or last line that begins with one; or all."""
        sentences = [
            one for one in _SENTENCE.finditer(text) if not _NEGATION.search(text, one.start() - 60, one.start())
        ]
        if sentences:
            return next(filter(None, sentences[-1].groups())), "whole"
        lines = text.strip().splitlines()
        labels = [line and line[1] for line in map(_LINE.fullmatch, lines)]
        is_listed = labels[:1] == ["A"] and "B" in labels and len(lines[0].strip(" *_`#>()[].:")) > 1
        letters = [*filter(None, labels)]
        if len(letters) > 1 and letters == [*ascii_uppercase[: len(letters)]]:
            return text.strip(), "whole"  # it goes through the options, and says of none that it is the answer
        pairs = [*zip(lines, labels, strict=True)]
        ends = pairs[-1:] + ([] if is_listed else pairs[:1])
        return next((line.strip() for line, label in ends if label), text.strip()), "whole"

    def examples(self) -> Sequence[str]:
        return (
            *("Doha", "a", "(A) Doha", "Riyadh", "D", "option d", "Dubai", "B.", "Dubai Marina", "C", "Muscat"),
            *("muscat", "None of the above", "E", "A. Dubai", "Z"),
        )

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return whether an answer names the option of a gold answer, which is a letter or a text too."""
        require_gold(gold)
        class_ = self.class_of(answer)
        return class_ is not None and class_ in [self.class_of(right) for right in gold]

    def evidence(self, passages: Sequence[Passage], policy: Policy) -> Certifying:
        return _OptionEvidence(self, passages, policy)

    def _speaks_of(self, place: int, text: str) -> bool:
        """Whether what follows a letter is a remark, or its option alone in fewer or more words that deny nothing."""
        words, options = _words(text), [*map(_words, self.options)]
        alike = [index for index, option in enumerate(options) if option and (option <= words or words <= option)]
        is_option = words and alike == [place] and _DENIALS.isdisjoint(words ^ options[place])
        return bool(is_option or (not alike and _REMARK.match(text)))

    def _by_text(self, text: str) -> int | None:
        class_ = short_class(text)
        return self._classes.index(class_) if class_ is not None and class_ in self._classes else None


def _words(text: str) -> frozenset[str]:
    return frozenset(normalise(text).split())


class _OptionEvidence:
    def __init__(self, kind: Choice, passages: Sequence[Passage], policy: Policy) -> None:
        self.passages = tuple(passages)
        self._kind = kind
        self._policy: Policy = policy
        self._evidence = Evidence(passages, policy)

    def certify(self, answer: str | None, question: str = "") -> Certificate:
        if answer is None or (index := self._kind.index(answer)) is None:
            return _NO_OPTION
        option = self._kind.options[index]
        if (class_ := short_class(option)) and class_.key in _ABOUT_OTHERS:
            return _ABOUT_OPTIONS
        others = [Passage("", other) for other in self._kind.options if other != option]
        if certify(option, others, self._policy).certified:
            return _PART_OF_ANOTHER
        return self._evidence.certify(option, question)
