"""A llama of one layer with random weights that writes printable ASCII, as a GGUF file; llama.cpp loads it at once."""

from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType

_WIDTH, _HEADS, _INNER = 32, 2, 32
_TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"
_TOKENS = ["<unk>", "<s>", "</s>", "\N{LOWER ONE EIGHTH BLOCK}", "\n", *map(chr, range(ord("!"), ord("~") + 1))]
"""The fourth is a space, as this kind of vocabulary writes it."""
_TYPES = [TokenType.UNKNOWN, *[TokenType.CONTROL] * 2, *[TokenType.NORMAL] * (len(_TOKENS) - 3)]


def write_tiny_gguf(path: Path) -> Path:
    """Write the model and return its path; a character is a token, and its replies mean nothing."""
    random = np.random.default_rng(0)
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(65_536)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(_TOKENS)
    writer.add_token_scores([0.0] * len(_TOKENS))
    writer.add_token_types(_TYPES)
    writer.add_add_space_prefix(False)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(_TEMPLATE)
    shapes = {"token_embd": (len(_TOKENS), _WIDTH), "output": (len(_TOKENS), _WIDTH)}
    shapes |= {f"blk.0.attn_{name}": (_WIDTH, _WIDTH) for name in ("q", "k", "v", "output")}
    shapes |= {f"blk.0.ffn_{name}": (_INNER, _WIDTH) for name in ("gate", "up")} | {"blk.0.ffn_down": (_WIDTH, _INNER)}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.normal(size=shape).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
