"""A tiny pretrained encoder with random weights, for tests."""

import string

import tokenizers
import torch
import transformers

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 64,
}


def make_tokenizer():
    """Return a tokenizer whose subwords are single characters."""
    characters = string.ascii_lowercase + string.digits + string.punctuation
    pieces = [*SPECIAL, *characters, *(f"##{character}" for character in characters)]
    found = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: at for at, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    found.normalizer = tokenizers.normalizers.BertNormalizer()
    found.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    found.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return found


def make_folder(folder):
    """Write an encoder into a folder and return the folder."""
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=tokenizer.get_vocab_size(), **SIZES)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
