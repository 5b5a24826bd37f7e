"""Writes the configuration and the tokenizer of a small llama for vLLM, which
makes up the weights itself (--load-format dummy).

usage: vllm_model.py FOLDER HIDDEN LAYERS
"""

import json
import pathlib
import random
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HEAD = 64  # width of an attention head
CONTEXT = 4096


def tokenizer(folder):
    """Byte pairs, trained on words made of syllables."""
    random.seed(1)
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    words = ["".join(random.choices(syllables, k=random.randint(1, 3))) for _ in range(3000)]
    lines = [" ".join(random.choices(words, k=10)) for _ in range(3000)]
    out = Tokenizer(models.BPE())
    out.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    out.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    out.train_from_iterator(lines, trainer)
    out.save(str(folder / "tokenizer.json"))
    return out.get_vocab_size()


def main(folder, hidden, layers):
    folder.mkdir(parents=True, exist_ok=True)
    size = (tokenizer(folder) + 63) // 64 * 64

    def write(name, **fields):
        (folder / name).write_text(json.dumps(fields))

    write(
        "tokenizer_config.json",
        tokenizer_class="PreTrainedTokenizerFast",
        bos_token="<s>",
        eos_token="</s>",
        model_max_length=CONTEXT,
        chat_template="{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:",
    )
    write("generation_config.json", bos_token_id=0, eos_token_id=1)
    write(
        "config.json",
        architectures=["LlamaForCausalLM"],
        model_type="llama",
        hidden_size=hidden,
        intermediate_size=hidden * 11 // 4 // 64 * 64,
        num_hidden_layers=layers,
        num_attention_heads=hidden // HEAD,
        num_key_value_heads=max(1, hidden // HEAD // 2),
        head_dim=HEAD,
        vocab_size=size,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        hidden_act="silu",
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=1,
        torch_dtype="bfloat16",
    )


main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
