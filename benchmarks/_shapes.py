"""Models of real shape with random weights, and texts for them: they show what training costs, not what it learns.

The policy's tokens are numbered words from a small vocabulary, with many tokens for each word. So text sampled from
random weights shares words with passages, as steps and evidence do. About one token in twenty ends a line. One in ten
is a number, which lets a step be changed.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config

from benchmarks.experiments.partition.tokenizer import TEMPLATE
from eldgr_dspy.programs.pools.prompts import prompt_of

SPECIAL: Final = ("<|pad|>", "<|im_start|>", "<|im_end|>", "<|unk|>")
WORDS, LINE, NUMBERS = 500, 20, 10
QUESTION, PASSAGES, PASSAGE = (15, 25), 10, (60, 120)
"""Words of a question, passages a question, words of a passage; as in HotpotQA."""

COMPLETIONS: Final = 16
"""Completions a step that are timed and counted. The recipes of the paper have 2, too few to keep a GPU busy."""


class Shape(NamedTuple):
    """The models and settings of a training run.

    Attributes:
        policy: Settings of a Qwen2.
        nli: Settings that differ from nli-deberta-v3-small.
        flags: Fields that differ from the recipe `ra_msd`.
    """

    policy: Mapping[str, Any]
    nli: Mapping[str, Any]
    flags: Sequence[str]


SHAPES: Final[Mapping[str, Shape]] = {
    "qwen2.5-3b": Shape(
        {
            "vocab_size": 151_936,
            "hidden_size": 2048,
            "intermediate_size": 11_008,
            "num_hidden_layers": 36,
            "num_attention_heads": 16,
            "num_key_value_heads": 2,
            "max_position_embeddings": 32_768,
        },
        {},
        (),
    ),
    "tiny": Shape(
        {
            "vocab_size": 2_000,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
        },
        {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64},
        ("--max_completion_length", "40", "--gradient_checkpointing", "false"),
    ),
}


def policy_config(shape: Shape) -> Qwen2Config:
    factory: Any = Qwen2Config
    config: Qwen2Config = factory(**shape.policy, tie_word_embeddings=True, pad_token_id=0, eos_token_id=2)
    return config


def policy_tokenizer(shape: Shape) -> Any:
    """Return a tokenizer with as many tokens as the policy; most of them spell the same words."""
    size = shape.policy["vocab_size"]
    pieces = [*SPECIAL, *(_piece(number) for number in range(len(SPECIAL), size))]
    words = Tokenizer(models.WordLevel(vocab={piece: at for at, piece in enumerate(pieces)}, unk_token=SPECIAL[3]))
    split: Any = pre_tokenizers.Split(Regex(r" ?\w+| ?[^\w\s]|\s"), behavior="isolated")
    cleaner: Any = decoders.Replace(Regex("#[0-9]+"), "")
    words.pre_tokenizer, words.decoder = split, decoders.Sequence([decoders.Fuse(), cleaner])
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(
        tokenizer_object=words,
        pad_token=SPECIAL[0],
        eos_token=SPECIAL[2],
        unk_token=SPECIAL[3],
        additional_special_tokens=[SPECIAL[1]],
        padding_side="left",
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def rows(count: int) -> list[dict[str, Any]]:
    """Return questions as training reads them, with ten passages each."""
    rng = Random(0)
    return [_row(rng) for _ in range(count)]


def _row(rng: Random) -> dict[str, Any]:
    question = _text(rng, QUESTION)
    return {
        "prompt": prompt_of(question, "retrieval"),
        "question": question,
        "task": "retrieval",
        "gold": [_text(rng, (1, 3))],
        "evidence": [{"title": _text(rng, (1, 2)), "text": _text(rng, PASSAGE)} for _ in range(PASSAGES)],
    }


def _text(rng: Random, words: tuple[int, int]) -> str:
    return " ".join(f"w{rng.randrange(WORDS)}" for _ in range(rng.randint(*words)))


def _piece(number: int) -> str:
    end = "" if number % LINE else ".\n"
    word = f"{number % WORDS}" if number % NUMBERS == 1 else f"w{number % WORDS}"
    return f" {word}{end}#{number}"
