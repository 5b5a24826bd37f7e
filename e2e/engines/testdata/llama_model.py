"""Writes a model of llama's architecture with random weights, for llama.cpp.

Its text is junk; what a token costs, alone and in a batch, is what it costs in
any model of this shape. It never ends by itself: the rows of the output matrix
that would say so are zero, so an answer has as many tokens as were asked for.

usage: llama_model.py FILE.gguf EMBEDDING LAYERS q4_0|q8_0|f16
"""

import itertools
import sys

import gguf
import numpy as np

HEAD = 64  # width of an attention head
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # kinds of tokens


def vocabulary():
    """Bytes, letters, and words of one to three syllables with all their beginnings."""
    tokens = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL}
    tokens.update({f"<0x{b:02X}>": BYTE for b in range(256)})
    space = "\u2581"
    tokens[space] = NORMAL
    tokens.update({chr(c): NORMAL for c in range(0x21, 0x7F)})
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    for count in (1, 2):
        for word in itertools.product(syllables, repeat=count):
            text = space + "".join(word)
            for end in range(2, len(text) + 1):  # merged a letter at a time
                tokens.setdefault(text[:end], NORMAL)
    return tokens


def main(file, width, layers, kind):
    tokens = vocabulary()
    drawn = np.array([k == NORMAL for k in tokens.values()])
    quant = gguf.GGMLQuantizationType[kind.upper()]
    random = np.random.default_rng(1)
    out = gguf.GGUFWriter(file, "llama")
    hidden, kv = width * 11 // 4 // 32 * 32, width // 2
    out.add_name(f"random-{width}-{layers}-{kind}")
    out.add_block_count(layers)
    out.add_context_length(8192)
    out.add_embedding_length(width)
    out.add_feed_forward_length(hidden)
    out.add_head_count(width // HEAD)
    out.add_head_count_kv(kv // HEAD)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(HEAD)
    out.add_vocab_size(len(tokens))
    out.add_tokenizer_model("llama")
    out.add_tokenizer_pre("default")
    out.add_token_list(list(tokens))
    out.add_token_scores([-float(i) for i in range(len(tokens))])
    out.add_token_types(list(tokens.values()))
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_unk_token_id(0)

    def matrix(name, rows, columns, keep=None):
        weights = random.standard_normal((rows, columns), dtype=np.float32) / np.float32(columns**0.5)
        if keep is not None:
            weights[~keep] = 0
        out.add_tensor(name, gguf.quants.quantize(weights, quant), raw_dtype=quant)

    def norm(name):
        out.add_tensor(name, np.ones(width, dtype=np.float32))

    matrix("token_embd.weight", len(tokens), width)
    norm("output_norm.weight")
    matrix("output.weight", len(tokens), width, drawn)
    for i in range(layers):
        norm(f"blk.{i}.attn_norm.weight")
        norm(f"blk.{i}.ffn_norm.weight")
        for part, rows, columns in (
            ("attn_q", width, width),
            ("attn_k", kv, width),
            ("attn_v", kv, width),
            ("attn_output", width, width),
            ("ffn_gate", hidden, width),
            ("ffn_up", hidden, width),
            ("ffn_down", width, hidden),
        ):
            matrix(f"blk.{i}.{part}.weight", rows, columns)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
