"""A small Qwen3 in plain torch: configuration, model, slot decoder and sampling. Only trainer, engine and examples import it."""
