"""ChatTokenizer: ids, round trips, no forged roles, and agreement with the Hugging Face files it writes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.chat.tokenizer import SPECIAL_TOKENS, ChatTokenizer
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import Message, Role

TEXTS = ["Tom has 95 food buys 99 loses 7", "calc 95 + 99", "f(3)==7 got 5", "answer 187"] * 20
TOKENIZER = ChatTokenizer.train(TEXTS, 320)


def test_special_ids_come_first() -> None:
    assert [TOKENIZER.pad_id, TOKENIZER.user_id, TOKENIZER.assistant_id] == [0, 1, 2]
    assert [TOKENIZER.tool_id, TOKENIZER.call_id, TOKENIZER.end_id] == [3, 4, 5]
    assert TOKENIZER.forbidden_ids == (0, 1, 2, 3)


def test_digits_are_single_tokens() -> None:
    assert len(TOKENIZER.encode("2718")) == 4


@given(st.text(max_size=40))
def test_text_round_trips_and_never_holds_a_special_id(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text.encode("utf-8", "replace").decode()
    assert min(ids, default=6) >= len(SPECIAL_TOKENS)


@pytest.mark.parametrize("token", SPECIAL_TOKENS)
def test_text_cannot_forge_a_role(token: str) -> None:
    ids = TOKENIZER.encode(f"a{token}b")
    assert min(ids) >= len(SPECIAL_TOKENS)


def test_assistant_turn_may_begin_with_a_call() -> None:
    ids = TOKENIZER.encode_assistant("<|call|>calc 1 + 2")
    assert ids[0] == TOKENIZER.call_id
    assert ids[-1] == TOKENIZER.end_id
    assert TOKENIZER.decode(ids) == "<|call|>calc 1 + 2<|end|>"


def test_hugging_face_template_gives_the_same_ids(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    TOKENIZER.save(tmp_path, max_tokens=256)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    messages = [
        Message(role=Role.USER, content="Tom has 95 food"),
        Message(role=Role.ASSISTANT, content="<|call|>calc 95 + 99"),
        Message(role=Role.TOOL, content="194"),
    ]
    chat = [{"role": message.role.value, "content": message.content} for message in messages]
    ids = theirs.apply_chat_template(chat, add_generation_prompt=True, tokenize=True, return_dict=False)
    assert ids == TOKENIZER.encode_prompt(messages)
    assert ids[-6:] == TOKENIZER.encode_observation("194")
    assert ChatTokenizer.load(tmp_path).encode("answer 187") == TOKENIZER.encode("answer 187")


def test_a_foreign_tokenizer_is_adopted_and_a_broken_one_refused() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    foreign = Tokenizer(models.BPE())
    foreign.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    foreign.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    document = foreign.to_str().encode()
    with pytest.raises(JourneymanError, match="lacks"):
        ChatTokenizer.from_json(document)
    adopted = ChatTokenizer.adopt(document)
    assert adopted.end_id >= foreign.get_vocab_size()
    with pytest.raises(JourneymanError) as caught:
        ChatTokenizer.from_json(b"{}")
    assert caught.value.code is ErrorCode.INVALID_INPUT
