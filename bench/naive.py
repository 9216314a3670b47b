"""One `generate` per prompt against niah, on the same prompts in one run: seconds, ratio, agreement, log-probabilities.

python bench/naive.py [--lengths 1k,2k,4k] [--depths 11]
"""

from __future__ import annotations

import copy
import re
import time

import torch
from common import arguments, ask_all, loaded_model, plan_of
from transformers import DynamicCache

NEW_TOKENS = 16


def number(text: str) -> str:
    found = re.search(r"\d{7}", text)
    return found.group() if found else text.strip()[:20]


def plain_logprob(loaded, cache, prompt) -> float:
    """Log-probability of the expected answer from a copy of a plain cache of the context."""
    cache = copy.deepcopy(cache)
    ids = torch.tensor([[*prompt.tail, *prompt.gold]])
    logits = loaded.model(input_ids=ids, **{loaded.cache_argument: cache}).logits[0, len(prompt.tail) - 1 : -1]
    return float(logits.float().log_softmax(-1).gather(1, torch.tensor(prompt.gold)[:, None]).sum())


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    plan = plan_of(args, "unused")
    groups = [plan.builder.prompts(group) for group in plan.groups]
    flat = [prompt for group in groups for prompt in group]
    print(f"{len(flat)} prompts, {sum(p.token_count for p in flat):,} tokens; torch {torch.__version__}")

    replies, niah_s, steps = ask_all(plan, plan.kvs[0], groups)
    answers = [reply for group in replies for reply in group]
    print(f"niah           {niah_s:8.1f} s   ({steps} passes behind {len(groups)} contexts)", flush=True)

    loaded = loaded_model(plan)
    texts = []
    started = time.perf_counter()
    with torch.inference_mode():
        for prompt in flat:
            ids = torch.tensor([prompt.ids()])
            out = loaded.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, do_sample=False
            )
            texts.append(plan.info.tokenizer.decode(out[0, ids.shape[1] :].tolist()))
    naive_s = time.perf_counter() - started
    print(f"generate each  {naive_s:8.1f} s   {loaded.dtype}, {torch.get_num_threads()} threads")
    same = sum(number(a.text) == number(t) for a, t in zip(answers, texts, strict=True))
    print(f"ratio          {naive_s / niah_s:8.2f} x")
    print(f"same number in {same} of {len(flat)} answers ({same / len(flat):.0%})", flush=True)

    differences = []
    with torch.inference_mode():
        for group, said in zip(groups, replies, strict=True):
            cache = DynamicCache(config=loaded.model.config)
            loaded.model(
                input_ids=torch.tensor([list(group[0].context)]), logits_to_keep=1, **{loaded.cache_argument: cache}
            )
            differences += [plain_logprob(loaded, cache, p) - r.logprob for p, r in zip(group, said, strict=True)]
    mean = sum(abs(d) for d in differences) / len(differences)
    largest = max(map(abs, differences))
    print(f"log-probability of the expected answer: mean |difference| {mean:.4f}, largest {largest:.4f}")


if __name__ == "__main__":
    main()
