"""What a completion says, its thinking and its answer apart.

A reasoning model thinks between tags (`eldgr_dspy.text.thinking`), or in a message's field `reasoning_content` or
`thinking`. Its thinking has steps, as its answer has, but a draft in there is not the answer. So the answer is read
after the end of the thinking, and thinking that never ends has none. Some chat templates put the opening tag at the end
of the prompt; such a completion begins inside the thinking.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.text.thinking import find_thinking

Message = Mapping[str, object]
Completion = str | Sequence[Message]

THINKING: Final = ("reasoning_content", "thinking")
"""The fields of a message that hold thinking."""

_PROMPT_END = 200  # characters; no tag is longer
_BLANK_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t]*(?:\r\n|\r|\n)")


class Output(NamedTuple):
    """What the model wrote.

    Attributes:
        whole: The text, with the tags around its thinking.
        reasoning: The same with line breaks and spaces in place of the tags, so that every character is where it was:
            what is split into steps.
        final: The text outside of the thinking: what is read for the answer. Empty if the thinking does not end.
    """

    whole: str
    reasoning: str
    final: str


def outputs_of(
    completions: Sequence[Completion], prompts: Sequence[object] = (), trainer: Any = None, ids: Sequence[Any] = ()
) -> tuple[Output, ...]:
    """Return what the model itself wrote: with tools, a completion also holds other messages."""
    prompts, tokenizer = prompts[: len(completions)], getattr(trainer, "processing_class", None)
    keys = [*map(repr, prompts)]  # the prompt of a group is rendered once
    opens = {key: _opens_thinking(of, trainer, tokenizer) for key, of in dict(zip(keys, prompts, strict=True)).items()}
    # Of a message that was parsed, only the tokens (`ids`) tell whether its thinking ends.
    rows = zip_longest(completions, map(opens.get, keys), ids[: len(completions)])
    return tuple(
        _output(at, completion, bool(inside), tokenizer.decode(tokens) if inside and tokenizer and tokens else "")
        for at, (completion, inside, tokens) in enumerate(rows)
    )


def _output(at: int, completion: object, inside: bool, raw: str) -> Output:
    if isinstance(completion, str):
        return _read(completion, inside=inside)
    messages: list[Any] = list(completion) if isinstance(completion, Sequence) else [None]
    if not all(isinstance(message, Mapping) for message in messages):
        raise ArgumentError(
            f"completions[{at}] must be text or a list of messages; got {completion!r:.80}. Give the output, '' if it "
            "is empty."
        )
    is_over = bool(raw) and not find_thinking(raw, inside=inside).is_open
    own = [_message(message, inside, is_over) for message in messages if message.get("role") == "assistant"]
    return own[0] if len(own) == 1 else _join(own)


def _message(message: Message, inside: bool, is_over: bool) -> Output:
    content = _text(message, "content")
    thought = next(filter(None, (_text(message, name).strip() for name in THINKING)), "")
    is_apart = bool(thought) or (is_over and not find_thinking(content).tags)  # the closing tag is not in the content
    answer = _read(content, inside=inside and not is_apart)
    return _join([Output(thought, thought, ""), answer])._replace(final=answer.final) if thought else answer


def _read(whole: str, *, inside: bool) -> Output:
    """Return a text that begins inside the thinking, or outside of it."""
    tags, parts, is_open = find_thinking(whole, inside=inside)
    start = parts[0][0] if parts else len(whole) * bool(tags)
    edges = [0, *(edge for tag in tags for edge in tag), len(whole)]
    pieces = [whole[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    gap, reasoning = _gap(piece.strip() for piece in pieces), pieces[0]
    for piece, (start_of_tag, end_of_tag) in zip(pieces[1:], tags, strict=True):
        before, after = reasoning.rstrip(), piece.lstrip()
        blank = len(reasoning) - len(before) + end_of_tag - start_of_tag + len(piece) - len(after)
        reasoning = before + gap.rjust(blank) + after
    return Output(whole, reasoning, "" if is_open else whole[start:])


def _gap(texts: Iterable[str]) -> str:
    """Return what keeps texts apart: a line break, or a blank line if one of them has paragraphs."""
    return "\n\n" if any(_BLANK_LINE.search(text) for text in texts) else "\n"


def _join(own: Sequence[Output]) -> Output:
    """Return several messages as one; if the last one does not get beyond its thinking, there is no answer."""
    full = [output for output in own if output.whole.strip()]
    gap = _gap(output.reasoning for output in full)
    is_open = bool(full) and not full[-1].final.strip()
    return Output(
        gap.join(output.whole for output in full),
        gap.join(output.reasoning for output in full),
        "" if is_open else gap.join(output.final for output in full),
    )


def _opens_thinking(prompt: Any, trainer: Any, tokenizer: Any) -> bool:
    """Return whether a prompt, as a trainer renders it, ends with a tag that opens the thinking."""
    if not isinstance(prompt, str):
        own, settings = getattr(trainer, "chat_template", None), getattr(trainer, "chat_template_kwargs", None) or {}
        if not own and not getattr(tokenizer, "chat_template", None):
            return False
        if hasattr(tokenizer, "tokenizer") and all(isinstance(message.get("content"), str) for message in prompt):
            # of a model that takes images; the trainer renders text as a part too
            prompt = [{**message, "content": [{"type": "text", "text": message["content"]}]} for message in prompt]
        settings = {"tools": getattr(trainer, "tools", None) or None, "chat_template": own, **settings}
        prompt = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False, **settings)
    end = prompt[-_PROMPT_END:]
    tags, _, is_open = find_thinking(end)
    return is_open and not end[tags[-1][1] :].strip()


def _text(message: Message, name: str) -> str:
    content = message.get(name)
    if content is None or isinstance(content, str):
        return content or ""  # of a message that only calls a tool, or does not think
    raise ArgumentError(
        f"completions: a message's {name} must be text; got {content!r:.80}. "
        "Join the text parts of the message before it is rewarded."
    )
