"""Find the final answer that a sample states, and the form in which it is stated.

A sample is read as a person reads it: not its thinking, and only up to where it ends, though a model may have run on
into a new turn or a new question. The text that is marked as the answer is read and not judged. Without a mark,
arithmetic takes the last number and retrieval the whole text. The form says that this is a guess.
"""

import re
from dataclasses import dataclass
from json import loads
from typing import NamedTuple, get_args

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.text.numbers import TEX_TEXT, read_number
from eldgr_dspy.text.sentence_ends import without_stop
from eldgr_dspy.text.thinking import find_thinking
from eldgr_dspy.words import Form, Mark, Task

_MARKS: dict[str, Mark] = {mark: mark for mark in get_args(Mark)}
_MARKS |= {"heading": "a_line", "json": "tagged", "option": "tagged", "field": "tagged"}

# Repetitions are possessive: no text, however adversarial, makes a search go back over what it has read. Here texts
# begin with a line end, and what a match may begin with is looked at first, which is most of the speed.
_ANSWER = r"(?i:(?:the\ |my\ )?(?:correct\ |short\ )?answer)"
_NO_OPTION = r"(?![*_]*+\s?[:：][^\n]*+\n[\s>*_\#]*+B[*_]*+\s?[:：])"  # above a line "B:" it is an option
_ITEM = r"(?>(?:(?:[-–•]|\d{1,2}[.)])[\ \t]++[*_]*+)?)"
_FINAL = r"(?>(?:\ (?i:correct[ea]|corretta|correta|finale?|exacte))?)"
_KEY = r"""["'](?i:(?:(?:final|correct|short)[_ ]?)?answer)["']\s*+:\s*+"""  # in JSON, or as Python prints it
_CHOICE = r"choice|(?:final|correct|selected|chosen)[_ ](?:choice|option)|answer[_ ](?:choice|letter|option)"
_MARK = re.compile(
    rf"""(?=[\n\#\\Ff<\["'TtMmARr答]) (?:
      (?P<a_line> \n[\ \t>*_\#✅✔☑➡👉🎯💡📌🏆\ufe0f]*+ (?: A {_NO_OPTION} | {_ITEM} (?: (?i:ans\.?)
        | {_ANSWER} | 정답 | 답 | (?:最终|最終)?答案 | 答え | (?:Endgültige\ |Richtige\ )?Antwort | Ответ | उत्तर
        | الإجابة
        | (?:Réponse|Respuesta|Risposta|Resposta){_FINAL} | Odpowiedź | Antwoord | Svar | Cevap | Jawaban ) )
        [*_]*+ \s?[:：] )
    | (?P<heading> \n[\ \t]*+ (?:\#{{1,6}}[^\w\n]*+|[*_]{{2,3}}) {_ANSWER} [\ \t*_\#]*+ (?=\n|\Z) )
    | (?P<hashes> (?<!\#)\#{{4}}(?!\#) )
    | (?P<boxed> \\boxed\s*+\{{ )
    | (?P<field> \n\[\[\ \#\#\ (?:final_)?answer\ \#\#\ \]\] )
    | (?P<finish> \b[Ff]inish\[ )
    | (?P<tagged> (?i: < (?:answer|final|final_answer|solution|response) > | \[ANSWER\] ) )
    | (?P<json> {_KEY} )
    | (?P<option> ["'](?i:{_CHOICE})["']\s*+:\s*+ )
    | (?P<phrase> (?:\b|(?=答))(?i: (?:the|my)\s++ (?: (?:\w++\s++){{0,2}} answer (?:\s++choice)?
                         (?:\s++(?:to|for)\s++(?:the|this|your)\s++(?:question|problem))?
                       | (?:most\s++)?(?:correct|right|best|likely)\s++(?:option|choice) )
                     (?>(?:,?\s++(?:therefore|thus|then|hence)\b,?)?)
                     \s++(?:is|(?:must|should|would|will)\s++be|(?:appears|seems)\s++to\s++be)\b
                     (?>(?-i:,?\s++(?:(?:most\s++)?likely|probably|definitely|clearly|certainly|therefore|thus|simply
                        |indeed|actually|hence|then)\b(?!-),?)?)
                     | (?-i:(?:(?<=[.!?]\ )|(?<=[.!?]\ \*\*))Answer)(?=[*_]*+:)
                     | (?:réponse|respuesta|risposta|resposta) {_FINAL} \s++(?:est(?>(?:\s++donc)?)|es|è|é)\b
                     | (?-i:Antwort)\s++(?:ist|lautet)\b(?!:?\s++nicht\b) | 答案是
                     | final\s++answer (?: \s++is\b | (?=[\s*_]*+:) | [\ \t*_\#]*+(?=\n|\Z) ) ) (?!\s++not\b) ) )""",
    re.VERBOSE,
)
_LEAD = re.compile(r"\A(?>(?:[\s:：*_`]|\\\[(?=\s)|\$\$(?=\s)|[-=]{3,}(?=[ \t]*+\n))+)")
# "The total is:" above the answer.
_ABOVE = re.compile(r"[^\n.!?,;]*\b(?:is|are|was|were|equals)[:：][ \t\r*_`]*\n(?!\s*(?:[-*•+]\s|\d+[.)]\s|[#|`]))")
_OPENER = re.compile(r"(?:\*{1,3}|_{1,3}|`)\Z")  # of an emphasis that the lead ends with
# What follows "the answer is" where that is a remark on an answer and not one.
_REMARK = re.compile(
    r"""(?: based | derived | found | obtained | calculated | computed | determined | rounded | given(?!\ by) | taken
      | supported | stated | expressed | verified | confirmed | consistent | reasonable | the\ same\ as
      | correct(?=\W*\Z|\W*\s(?:because|since|as|and|based)\b) | in\ (?:the\ |\w+\ )?(?:passage|text|context|document)
    )\b(?!\ to\ be\b|\ as\b)""",
    re.VERBOSE,
)
_EMPTY = re.compile(rf"""{_KEY}(?:null|None|"\s*+"|'\s*+'|\[\s*+\])""")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_JSON = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,{}\[\]"']++""", re.DOTALL)
# The backslash of a TeX command that is not doubled: "\times" would be a tab and "imes". Pairs are taken as they are.
_TEX_IN_JSON = re.compile(
    r"\\\\|\\(?=[bf][a-z]|t(?:ext|imes|frac|heta|riangle|au\b|an[\\^({])|r(?:ight|angle|ho\b)|n(?:eq|abla|otin)\b"
    r'|u(?![0-9A-Fa-f]{4})|[^"\\/bfnrtu])'
)
_LIST_OF_ONE = re.compile(rf"\[\s*+({_JSON.pattern})\s*+\]", re.DOTALL)
_NESTING = re.compile(r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_GOES_ON = re.compile(r"\s*+(?:[}\]]|,\s*+[\"{])").match  # what a value is in is not closed yet
_CLOSING_TAG = re.compile(r"</(?:answer|final|final_answer|solution|response)\s*+>|\[/ANSWER\]", re.IGNORECASE)
_HEADING = re.compile(
    r"\d++[.)]\s++[^\W\d_]|(?:step|part|phase|method|approach|case)s? #?\d|(?:sources?|references?|citations?|notes?"
    r"|steps?|explanation|reasoning|rationale|justification|verification|check|calculations?|analysis|summary|done"
    r"|conclusion|context|background|overview|confidence|assumptions?|limitations?|evidence|caveats?)"
    r"(?: (?:of|for|and|to|by|with)\b| ?[:–-]|\.?\Z)",
    re.IGNORECASE,
)

# Where a sample ends: at a token for the end of a turn, or where a line begins another turn or question.
_NEXT = r"(?:(?:next|new|another|follow-up)\ )?"
_END = re.compile(
    rf"""[<\[\n] (?i:
      (?P<user> (?<=<) (?: [|｜](?:im_start|start_header_id|turn)[|｜]> | start_of_turn> | \|turn> )\s?user\b
        | (?<=<)[|｜]user[|｜]> | (?<=\[)INST\] )
    | (?P<token> (?: (?<=<)(?: [|｜][^<>|｜\n]{{1,40}}[|｜] | /?s | [eb]os | (?:start|end)_of_turn | \|?turn\|?
        | extra_id_\d )> | (?<=\[)/INST\] ) (?: \s*+(?:assistant|model)\b )? )
    | (?<=\n) [\ \t>*_-]*+ (?:
        (?P<turn> {_NEXT}(?:question|problem|exercise|q)\ ?\#?\d{{1,3}}[*_]*+ (?: \s?[:：.)] | [\ \t]*+(?:\n|\Z) )
            | (?:human|user|student)[*_]*+ \s?[:：]
            | \#{{1,6}}[\ \t*_]*+ {_NEXT} (?:instruction|input|human|user|question|problem|exercise|task)s?
              (?:\ \#?\d{{1,3}})?[*_]*+[\ \t]*+ (?: [:：] | \n | \Z ) )
        | (?P<asked> (?: (?:\#\ )?{_NEXT}(?:question|problem|exercise|instruction|q|问题|问|题目) | \#\ passage )
              [*_]*+ \s?[:：] )
        | (?P<other> (?: (?:\d{{1,2}}[.)]\ |user\ )question | task | input )[*_]*+ \s?[:：] | \[question\] ) ) )""",
    re.VERBOSE,
)
_ROLE = re.compile(r"\A(?:\s*+(?:\#{1,6}[ \t]*+)?(?:assistant|response|model|AI)[ \t]?:\s*+|\n)", re.IGNORECASE)
_CONFIDENCE = re.compile(r"[\s>*_#-]*+(?:confidence(?: level| score)?|certainty)[*_]*+\s?:", re.IGNORECASE).match
_ANSWER_FIRST = re.compile(
    r"\s*+([^\n]{1,100}+)(?<![:：?？])\n[\s>*_#(]*+(?:explanation|reason(?:ing)?|rationale|justification|evidence"
    r"|sources?|references?|notes?)[*_]*+\s?:",
    re.IGNORECASE,
)
_INTRODUCTION = re.compile(
    r"\W*+(?:sure|ok(?:ay)?|alright|certainly|of course|let|here|given|context|passage|document|facts?|input|note|i'll"
    r"|to (?:answer|solve|find)|(?:i|we) (?:will|need|have)|the (?:question|problem|task))\b[^=]*+\Z|[^=]*[:,]\s*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Extraction:
    """An extracted answer and the form in which it was stated.

    The answer is a slice of the text, but for an emphasis that began before it, or what a string of JSON says.
    `last_number` and `whole` are the fallbacks of arithmetic and of retrieval. The others are explicit marks.
    """

    answer: str
    form: Form


class SampleReading(NamedTuple):
    """A sample's answer, whether its thinking never ends, and whether it ran on into a new turn or question."""

    extraction: Extraction | None
    is_open: bool = False
    cut: bool = False


def extract_answer(text: str, answer: Task | AnswerType) -> Extraction | None:
    r"""Return the final answer of a sample, or None where it has none.

    Thinking is never read, and thinking that never ends leaves no answer (`eldgr_dspy.text.thinking`). Once an answer
    is stated, a token for the end of a turn, another turn or another question ends the text.

    Explicit are `#### x`, a line `A: x` or `Answer: x`, an answer behind or below a heading `### Answer`, `\boxed{x}`,
    "the answer is x", "final answer: x", an agent's `Finish[x]`, `"answer": "x"` in JSON, DSPy's `[[ ## answer ## ]]`,
    and `<answer>x</answer>` as GRPO recipes ask for it, also with `final`, `final_answer`, `solution` or `response` for
    a tag, or `[ANSWER]x[/ANSWER]`. The last one that states an answer wins. What JSON says besides its answer states
    none, nor does "the answer is" behind JSON; `#### x` with text below it and without a digit may be a heading and
    counts if nothing else does. If nothing closes the answer, a sentence's full stop is dropped, and the dot of "Inc."
    or "U.S." stays. In arithmetic an explicit answer is cut down to its number where the number can be cut out safely.
    The time taken grows linearly with the text.

    Args:
        text: The candidate's whole text.
        answer: The answer type or its name. Without a mark a number is the last one, or the one that the text has
            calculated if only circumstances follow ("10 + 3 = 13. So 13 in 3 years."); short text is the whole text
            without outer white space.

    Returns:
        The answer with its form, or None where the text is blank, only thinks or, in arithmetic, is without a number.

    Raises:
        ArgumentError: `answer` is not an answer type.
    """
    return read_sample(text, answer).extraction


def read_sample(text: str, answer: Task | AnswerType) -> SampleReading:
    """Return the answer of a sample as `extract_answer` does, and whether its thinking ends and whether it ran on."""
    kind = answer_type(answer)
    _, parts, is_open = find_thinking(text)
    last = None
    for start, end in () if is_open else reversed(parts):
        reading = _turn(text[start:end], kind)
        if reading.extraction and reading.extraction.form in _MARKS:
            return reading
        last = last or reading
    return last or SampleReading(None, is_open)


def _turn(text: str, kind: AnswerType) -> SampleReading:
    """Read a text up to where its turn ends, which it does not before it states an answer."""
    start = begin = 0
    opener, text = "token", f"\n{text}"
    for end in _END.finditer(text):
        segment = text[start : end.start()]
        extraction = None if opener == "user" else _marked_answer(segment, kind)
        introduces = end.lastgroup == "other" or (end.lastgroup in ("asked", "turn") and _INTRODUCTION.match(segment))
        if extraction is None and opener == "token" and not introduces:  # a question of its own does not end a text
            extraction = _guess(segment, kind)
        if extraction:
            return SampleReading(extraction, cut=bool(text[end.end() :].strip()))
        start, opener = end.end(), end.lastgroup or ""
        begin = start if opener in ("user", "token") else begin
    return SampleReading(_marked_answer(text[start:], kind) or _guess(text[begin:], kind))


def _guess(text: str, kind: AnswerType) -> Extraction | None:
    whole = text.strip("` \t\n").removeprefix("json").lstrip()
    if whole[:1] == "{" and whole[-1:] == "}" and _EMPTY.search(whole):  # an object that says that it has no answer
        return None
    text = _ROLE.sub("", text)
    above, _, last = text.rstrip().rpartition("\n") if ":" in text else ("", "", "")
    text = above if above.strip() and _CONFIDENCE(last) else text
    first = _ANSWER_FIRST.match(text) if above else None  # an answer, and below it why
    line = first[1].strip(" *_`$.()[]") if first else ""
    is_answer = len(line) == 1 if kind.needs_options else kind.way == "evidence" or read_number(line)
    answer, form = kind.unmarked(first[1] if first and is_answer else text)
    return Extraction(answer, form) if answer else None


def _marked_answer(text: str, kind: AnswerType) -> Extraction | None:
    marks = [mark for mark in _MARK.finditer(text) if mark.lastgroup != "option" or kind.needs_options]
    if jsons := [
        mark for mark in marks if mark.lastgroup in ("json", "option")
    ]:  # what else is in its object explains it
        end = _object_end(text, jsons[-1].end())
        behind = [mark for mark in marks if mark.start() >= end]  # "the answer is based on" may begin a remark there
        marks = jsons + [mark for mark in behind if mark.lastgroup != "phrase" or "final" in mark[0].lower()]
    ends = _closed_braces(text) if any(mark.lastgroup == "boxed" for mark in marks) else {}
    limit, heading = len(text), None
    for mark in reversed(marks):
        name = mark.lastgroup or ""
        if answer := kind.stated(_payload(text, name, mark.end(), limit, ends, kind), _MARKS[name]):
            extraction = Extraction(answer, _MARKS[name])
            amount = any(map(str.isdigit, answer)) and len(answer.split()) <= 4
            if name != "hashes" or amount or not (heading or "\n" in text[mark.end() :].strip()):
                return extraction
            heading = heading or extraction
        limit = mark.start()
    return heading


def _payload(text: str, name: str, start: int, limit: int, ends: dict[int, int], kind: AnswerType) -> str:
    """What follows a mark that ends at `start`, read no further than `limit`, where the next mark begins."""
    if name == "boxed":
        payload = text[start : ends.get(start, start)].strip()
        wrapper = TEX_TEXT.fullmatch(payload)
        return wrapper[1].strip() if wrapper else payload
    if name in ("json", "option"):
        return _of_json(text, start)
    if name == "field":
        return text[start:limit].partition("\n[[ ## ")[0].strip()
    if name == "tagged" and (tag := _CLOSING_TAG.search(text, start, limit)):
        return text[start : tag.start()].strip()
    if name in ("tagged", "finish"):
        line = text[start:limit].partition("\n")[0]
        return (line.rpartition("]")[0] if name == "finish" else line).strip()
    payload = _LEAD.sub("", text[start:limit])
    if (above := _ABOVE.match(payload)) and (below := _LEAD.sub("", payload[above.end() :])):
        payload = below
    opener = _OPENER.search(text, start, limit - len(payload))
    payload = payload.partition("\n")[0].rstrip(" \t\r\n*_`")
    if opener:
        payload = re.sub(rf"(?<=[^\s*_]){re.escape(opener[0])}(?![*\w])", "", payload, count=1)
    if name == "hashes" and _HEADING.match(payload):
        return ""
    if name != "phrase":
        return without_stop(payload)
    return "" if _REMARK.match(payload) else without_stop(kind.sentence(payload))


def _of_json(text: str, start: int) -> str:
    """The text or the number of JSON that starts there, alone in a list too; '' for anything else."""
    item = _LIST_OF_ONE.match(text, start)
    if (value := _JSON.match(text, item.start(1) if item else start)) is None or value[0] in ("null", "None"):
        return ""
    if value[0].startswith("'"):  # as Python prints it
        return value[0][1:-1].strip()
    try:
        plain = _TEX_IN_JSON.sub(r"\\\\", value[0])
        return str(loads(plain, strict=False)).strip() if plain.startswith('"') else plain
    except ValueError:
        return value[0].strip('"')


def _object_end(text: str, start: int) -> int:
    """Where the outermost JSON ends that `start` is in; the end of the text if it is not closed."""
    depth = 1
    for match in _NESTING.finditer(text, start):
        depth += (match[0] in "{[") - (match[0] in "}]")
        if depth <= 0 and match[0] in "}]" and not _GOES_ON(text, match.end()):
            return match.end()
    return len(text)


def _closed_braces(text: str) -> dict[int, int]:
    """Where the content of each pair of braces starts, and where it ends. They nest; escaped ones do not count."""
    ends, starts = dict[int, int](), list[int]()
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            starts.append(match.end())
        elif match[0] == "}" and starts:
            ends[starts.pop()] = match.start()
    return ends


def before_answer(answer: str, text: str) -> str:
    """Return the text before its answer, or the whole text if that is empty or the text does not end with it."""
    rest, line = text, f"\n{answer.strip()}"
    while answer and rest.rstrip().endswith(line):  # once from the text itself, and once if it was added after it
        rest = rest.rstrip().removesuffix(line)
    return rest if rest.strip() else text
