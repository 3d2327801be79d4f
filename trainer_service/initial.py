"""The init job: a small model from a seed and a tokenizer from the domains' texts, or a user's own folder."""

from collections.abc import Sequence

from journeyman.artefacts import MadeHow, build_policy, store_policy
from journeyman.artefacts.folder import read_folder
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.model.config import ModelConfig
from journeyman.model.qwen3 import Qwen3, initialise
from journeyman.objects.port import Objects
from journeyman.packs.load import load_pack
from journeyman.records import PolicyRef, PolicyVersion
from trainer_service.core.records import InitSpec
from trainer_service.learner import ComputeThread

VOCAB_SIZE = 512
_ECHO_TEXTS = ("say", "say rent 12 food 340", "1 2 3 4 5 6 7 8 9 0")


async def make_initial(
    job_id: str, spec: InitSpec, objects: Objects, compute: ComputeThread, threads: int
) -> PolicyRef:
    """Version 0.0 of the job. INVALID_INPUT names what is wrong with from_path."""
    model, tokenizer = await compute.run(lambda: _build(spec), threads=threads)
    version = PolicyVersion(incarnation=0, step=0)
    built = await compute.run(
        lambda: build_policy(
            run_id=job_id, version=version, model=model, tokenizer=tokenizer, made_how=MadeHow(stage="init")
        ),
        threads=threads,
    )
    return await store_policy(objects, built)


def _build(spec: InitSpec) -> tuple[Qwen3, ChatTokenizer]:
    if spec.from_path:
        base = read_folder(spec.from_path)
        return base.model, base.tokenizer
    tokenizer = ChatTokenizer.train(_texts(spec.domains), VOCAB_SIZE)
    return initialise(Qwen3(ModelConfig(vocab_size=VOCAB_SIZE)), spec.seed), tokenizer


def _texts(domains: Sequence[str]) -> list[str]:
    return [*_ECHO_TEXTS, *(text for domain in domains for text in load_pack(domain).vocabulary_texts())]
