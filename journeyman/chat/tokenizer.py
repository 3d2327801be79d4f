"""ChatTokenizer: text to ids and back, with the six tokens that mark who speaks.

Called by rollout worker, trainer and the one-file loop. Text is never able to forge a role: encoding treats a special token's
spelling inside a text as ordinary characters, except a leading `<|call|>` of an assistant turn (encode_assistant).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import Message, Role

PAD, USER, ASSISTANT, TOOL, CALL, END = "<|pad|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|call|>", "<|end|>"
SPECIAL_TOKENS = (PAD, USER, ASSISTANT, TOOL, CALL, END)
"""In a tokenizer made by train their ids are 0..5 in this order."""

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)

_ROLE_TOKENS = {Role.USER: USER, Role.ASSISTANT: ASSISTANT, Role.TOOL: TOOL}
_CACHE_LIMIT = 100_000


class ChatTokenizer:
    """A byte-level BPE with role tokens. Digits are always single tokens, so that a small model can copy and add numbers."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        found = {token: tokenizer.token_to_id(token) for token in SPECIAL_TOKENS}
        ids = {token: int(identity) for token, identity in found.items() if identity is not None}
        missing = [token for token in SPECIAL_TOKENS if token not in ids]
        if missing:
            raise JourneymanError(
                ErrorCode.INVALID_INPUT, f"the tokenizer lacks the special tokens {' '.join(missing)}; adopt adds them"
            )
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self._cache: dict[str, tuple[int, ...]] = {}
        self.pad_id, self.user_id, self.assistant_id = ids[PAD], ids[USER], ids[ASSISTANT]
        self.tool_id, self.call_id, self.end_id = ids[TOOL], ids[CALL], ids[END]
        self._role_ids = {role: ids[token] for role, token in _ROLE_TOKENS.items()}
        self.forbidden_ids = (self.pad_id, self.user_id, self.assistant_id, self.tool_id)
        """Tokens a policy never says; masked in sampling and in training log-probabilities alike."""

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "ChatTokenizer":
        """Learns merges from texts; at most vocab_size ids including the special tokens and 256 bytes."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer)

    @classmethod
    def from_json(cls, document: bytes) -> "ChatTokenizer":
        """Reads the content of a tokenizer.json that holds the special tokens."""
        return cls(_parse(document))

    @classmethod
    def adopt(cls, document: bytes) -> "ChatTokenizer":
        """Reads the tokenizer.json of another family and adds whichever special tokens it lacks, after its last id."""
        tokenizer = _parse(document)
        tokenizer.add_special_tokens([token for token in SPECIAL_TOKENS if tokenizer.token_to_id(token) is None])
        return cls(tokenizer)

    @property
    def vocab_size(self) -> int:
        """Ids in use, special tokens included; a model's vocabulary may be larger."""
        return int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of plain text; never a special id."""
        cached = self._cache.get(text)
        if cached is None:
            cached = tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)
            if len(self._cache) >= _CACHE_LIMIT:
                self._cache.clear()
            self._cache[text] = cached
        return cached

    def encode_assistant(self, text: str) -> list[int]:
        """Ids of an assistant turn as the policy would sample it: an optional leading `<|call|>`, the text, `<|end|>`."""
        if text.startswith(CALL):
            return [self.call_id, *self.encode(text.removeprefix(CALL)), self.end_id]
        return [*self.encode(text), self.end_id]

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """Ids of a conversation, ending where the assistant is to speak."""
        ids: list[int] = []
        for message in messages:
            ids.append(self._role_ids[message.role])
            if message.role is Role.ASSISTANT:
                ids += self.encode_assistant(message.content)
            else:
                ids += [*self.encode(message.content), self.end_id]
        return [*ids, self.assistant_id]

    def encode_observation(self, text: str) -> list[int]:
        """Ids appended after an assistant turn when a tool answers, ending where the assistant is to speak again."""
        return [self.tool_id, *self.encode(text), self.end_id, self.assistant_id]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens spelled out; bytes that are no UTF-8 become U+FFFD."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def files(self, *, max_tokens: int) -> Mapping[str, bytes]:
        """tokenizer.json and tokenizer_config.json as `transformers` reads them."""
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": max_tokens,
            "clean_up_tokenization_spaces": False,
            "pad_token": PAD,
            "eos_token": END,
            "chat_template": CHAT_TEMPLATE,
        }
        return {
            "tokenizer.json": str(self._tokenizer.to_str(pretty=False)).encode(),
            "tokenizer_config.json": json.dumps(config, indent=2).encode(),
        }

    def save(self, folder: Path, *, max_tokens: int) -> None:
        """Writes files into an existing folder."""
        for name, content in self.files(max_tokens=max_tokens).items():
            (folder / name).write_bytes(content)

    @classmethod
    def load(cls, folder: Path) -> "ChatTokenizer":
        """Reads what save wrote."""
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise JourneymanError(ErrorCode.INVALID_INPUT, f"no tokenizer.json in {folder}")
        return cls.from_json(path.read_bytes())


def _parse(document: bytes) -> Tokenizer:
    try:
        return Tokenizer.from_str(document.decode())
    except Exception as error:  # the library raises bare Exception for a malformed document
        raise JourneymanError(ErrorCode.INVALID_INPUT, f"tokenizer.json cannot be read: {error}") from error
