"""Token-exact prompts: haystack slices, needles between sentences, one question at the end."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from niah.errors import CellError, ConfigError
from niah.prompts.breaks import NEAR_SHARE, last_place, nearest_place
from niah.prompts.segments import CLOSED, LEAD, PARAGRAPH, TRAIL, Ids, Segmented, count_whole
from niah.prompts.tokens import LibraryTokenizer, Template, Tokenizer
from niah.types import Case, Needle, Placement, Prompt

# how many sentences before the budget's end may be given up to make two later ones fill it exactly
_BACK_STEPS = 4
# sentences looked at for one whose cut falls before a word
_CUT_CANDIDATES = 64
# a character is at most four bytes, so at most so many tokens
_CHARACTER_TOKENS = 4
# of a sentence that is cut, a prompt holds at least so many tokens
_LEAST_TOKENS = 64
# tokens around a needle that are decoded to see that it arrived whole
_WINDOW_TOKENS = 12


class _Frame(NamedTuple):
    """What stands around the haystack, as tokens; tails and golds go with the cases one to one."""

    head: list[int]
    tails: list[list[int]]
    golds: list[tuple[int, ...]]


class _Run(NamedTuple):
    """Consecutive sentences ``first`` to ``last`` (not included); the last may be cut after ``tokens`` tokens."""

    first: int
    last: int
    tokens: int


class _Boundaries(NamedTuple):
    """Where needles may go: before haystack token ``at``, which starts sentence ``sentence``; the end comes last."""

    at: NDArray[np.int64]
    sentence: NDArray[np.int64]
    is_cut: bool  # the haystack ends inside a sentence


class _Spot(NamedTuple):
    """Where a needle goes: before haystack token ``at``, with white space before and after it."""

    at: int
    before: str
    after: str


class _Inserted(NamedTuple):
    needle: Needle
    at: int
    ids: list[int]


def build_context(
    tokenizer: Tokenizer,
    template: Template,
    segmented: Segmented,
    cases: Sequence[Case],
    length: int,
    min_answer_budget: int,
    *,
    inside_sentences: bool | None = None,
) -> list[Prompt]:
    """Prompts of all cases of one context: they share one context array and differ in their tails.

    For each, ``len(context) + len(tail) + answer_budget == length`` in tokens, and the answer budget is at least
    ``min_answer_budget``: the longest tail gets just that or a few tokens more, shorter tails get the rest.
    A needle goes to the sentence boundary nearest to its depth, counted in haystack tokens without needles. Where
    sentences are too long for that, it goes inside one, between two words if there are words.

    Args:
        inside_sentences: whether it may; by default where the text is too coarse for this length.

    Raises:
        ConfigError: the length is too short (with the numbers), the haystack too short, or cases that do not
            share needles and instruction.
        CellError: ``needle_lost``: a needle did not arrive whole, or its value stands elsewhere too.
    """
    _check_shared(cases)
    frame = _frame(tokenizer, template, segmented, cases)
    fixed = len(frame.head) + max(len(tail) for tail in frame.tails) + min_answer_budget
    needles = sorted(cases[0].needles, key=lambda needle: needle.depth)
    reserve = sum(len(ids) for ids in tokenizer.encode_batch([" " + needle.text for needle in needles]))
    inside = segmented.is_coarse(length) if inside_sentences is None else inside_sentences
    while True:
        size = length - fixed - reserve
        _check_fits(frame, segmented, length, reserve, size, min_answer_budget, _least(segmented, inside=inside))
        runs = _fill(segmented, tokenizer, size, inside=inside)
        inserted = _insert(tokenizer, segmented, runs, needles, inside=inside)
        used = sum(len(item.ids) for item in inserted)
        # a needle is a token longer or shorter in some places; what is reserved and not used goes to the answer
        if used <= reserve:
            return _prompts(tokenizer, segmented, frame, cases, runs, inserted, length)
        # ends after a few rounds: the reserve only grows, and never beyond the longest forms of all needles
        reserve = used


def min_length(
    tokenizer: Tokenizer, template: Template, segmented: Segmented, cases: Sequence[Case], min_answer_budget: int
) -> int:
    """The shortest length in tokens for which ``build_context`` takes these cases."""
    overhead = overhead_tokens(tokenizer, template, segmented, cases, min_answer_budget)
    least = _least(segmented, inside=True)
    whole = _least(segmented, inside=False)
    return overhead + (least if segmented.is_coarse(overhead + least) else whole)


def _least(segmented: Segmented, *, inside: bool) -> int:
    """Tokens of haystack that a prompt holds at least: its first sentence, or a piece of a long one."""
    first = max(int(segmented.offsets[1]), 1)
    return min(first, _LEAST_TOKENS) if inside else first


def overhead_tokens(
    tokenizer: Tokenizer, template: Template, segmented: Segmented, cases: Sequence[Case], min_answer_budget: int
) -> int:
    """Tokens of a prompt that are not haystack, at most: template, instruction, needles, longest tail and answer."""
    _check_shared(cases)
    frame = _frame(tokenizer, template, segmented, cases)
    forms = [_forms(needle) for needle in cases[0].needles]
    needles = sum(max(len(ids) for ids in tokenizer.encode_batch(form)) for form in forms)
    return len(frame.head) + needles + max(len(tail) for tail in frame.tails) + min_answer_budget


def context_text(prompt: Prompt, tokenizer: Tokenizer) -> str:
    """The whole prompt as text, special tokens written out."""
    return tokenizer.decode(prompt.ids())


def _check_shared(cases: Sequence[Case]) -> None:
    if not cases:
        raise ConfigError("a context without cases has nothing to ask; give at least one case.")
    if any((c.needles, c.instruction) != (cases[0].needles, cases[0].instruction) for c in cases):
        raise ConfigError("cases of one context must share needles and instruction; put the others in another context.")


def _frame(tokenizer: Tokenizer, template: Template, segmented: Segmented, cases: Sequence[Case]) -> _Frame:
    begin = go_on = tokenizer.encode
    if isinstance(tokenizer, LibraryTokenizer):
        begin, go_on = tokenizer.encode_start, tokenizer.encode_rest
    head = template.prefix + cases[0].instruction
    if segmented.kinds[0] == TRAIL and cases[0].instruction:
        head += PARAGRAPH
    tails, golds = [], []
    for case in cases:
        text = PARAGRAPH + case.question + template.suffix
        prefix, gold = case.answer_prefix, case.gold
        # without an assistant header the reply follows the question on the same line, so it needs its space
        if not template.suffix and prefix:
            prefix = " " + prefix.lstrip()
        elif not template.suffix and gold:
            gold = " " + gold.lstrip()
        tail = go_on(text + prefix)
        tails.append(tail)
        golds.append(_gold(tokenizer, go_on(text + prefix + gold), tail, gold))
    start = tokenizer.encode(template.start) if template.start else []
    return _Frame([*start, *(begin(head) if head else [])], tails, golds)


def _gold(tokenizer: Tokenizer, whole: list[int], tail: list[int], gold: str) -> tuple[int, ...]:
    """Ids of the expected continuation, as the tokenizer goes on after the tail where it can."""
    if whole[: len(tail)] == tail:
        return tuple(whole[len(tail) :])
    # tail and gold would fuse at the seam; the tail is sent as it is, so gold starts afresh
    return tuple(tokenizer.encode_batch([gold])[0])


def _check_fits(
    frame: _Frame, segmented: Segmented, length: int, needles: int, size: int, answer: int, first: int
) -> None:
    if size < first:
        question = max(len(tail) for tail in frame.tails)
        raise ConfigError(
            f"length {length} is too short: template and instruction take {len(frame.head)} tokens, needles {needles}, "
            f"question {question}, answer {answer}, and {_text_words(segmented, first)} at least {first}; "
            f"ask for {length - size + first} or more, or for fewer needles."
        )
    if size > segmented.token_total:
        raise ConfigError(
            f"length {length} needs {size} haystack tokens and the haystack has {segmented.token_total}; "
            "ask for shorter lengths, give more text, or let it repeat where the source has repeat=true."
        )


def _text_words(segmented: Segmented, least: int) -> str:
    return "one haystack sentence" if least == int(segmented.offsets[1]) else "haystack text"


def _fill(segmented: Segmented, tokenizer: Tokenizer, size: int, *, inside: bool) -> list[_Run]:
    """Sentences that are ``size`` tokens together: all from the start, then one or two later ones that fit exactly."""
    offsets, kinds = segmented.offsets, segmented.kinds
    whole = int(np.searchsorted(offsets, size, side="right")) - 1
    if offsets[whole] == size:
        return [_Run(0, whole, size)]
    reach = segmented.reach(size)
    lengths = np.diff(offsets[: reach + 1])
    # a sentence from elsewhere must bring its own white space, and leave that of the next one alone
    movable = (kinds[:reach] == LEAD) & (kinds[1 : reach + 1] == LEAD) & (lengths > 0)
    for last in range(whole, max(whole - _BACK_STEPS, 0), -1):
        if kinds[last] != LEAD:
            continue
        later = np.flatnonzero(movable[last + 1 :]) + last + 1
        extra = _exact(lengths, later, size - int(offsets[last]))
        if extra:
            return [_Run(0, last, int(offsets[last])), *(_Run(i, i + 1, int(lengths[i])) for i in extra)]
    return _cut(segmented, tokenizer, whole, size, inside=inside)


def _exact(lengths: NDArray[np.int64], later: NDArray[np.int64], rest: int) -> list[int]:
    """The first one or two of the ``later`` sentences, in order, whose lengths sum to ``rest``."""
    sizes = lengths[later]
    single = np.flatnonzero(sizes == rest)
    if len(single):
        return [int(later[single[0]])]
    seen: dict[int, int] = {}
    for sentence, tokens in zip(later.tolist(), sizes.tolist(), strict=True):
        if rest - tokens in seen:
            return [seen[rest - tokens], sentence]
        seen.setdefault(tokens, sentence)
    return []


def _cut(segmented: Segmented, tokenizer: Tokenizer, whole: int, size: int, *, inside: bool) -> list[_Run]:
    """All sentences that fit, and the start of one more: one that can be cut before a word where there is one.

    May be some tokens short of ``size``: up to three, in texts of long sentences a word or a cluster of characters.
    """
    offsets, kinds, ids = segmented.offsets, segmented.kinds, segmented.ids
    rest = size - int(offsets[whole])
    candidates = [whole]
    if kinds[whole] == LEAD and whole:
        longer = (i for i in range(whole + 1, segmented.reach(size)) if kinds[i] == LEAD)
        candidates += islice((i for i in longer if offsets[i + 1] - offsets[i] > rest), _CUT_CANDIDATES)
    # the first sentence of all may be the one that is cut
    body = [_Run(0, whole, int(offsets[whole]))] if whole else []
    for sentence in candidates:
        at = int(offsets[sentence]) + rest
        if tokenizer.decode(ids[at : at + 1].tolist())[:1].isspace():
            return [*body, _Run(sentence, sentence + 1, rest)]
    if inside:
        end = last_place(tokenizer, ids, int(offsets[whole]), size)
        if end is not None:
            return [*body, _Run(whole, whole + 1, end - int(offsets[whole]))]
    # a script without spaces: at least no character whose bytes are several tokens is torn
    start = int(offsets[whole])
    for kept in range(rest, max(rest - _CHARACTER_TOKENS, 0), -1):
        if not tokenizer.decode(ids[start : start + kept].tolist()).endswith("\ufffd"):
            return [*body, _Run(whole, whole + 1, kept)]
    return body


def _insert(
    tokenizer: Tokenizer, segmented: Segmented, runs: Sequence[_Run], needles: Sequence[Needle], *, inside: bool
) -> list[_Inserted]:
    """Needles in order of depth, each at the open boundary nearest to its depth (the earlier one of two).

    Args:
        inside: a needle whose boundary is not near goes inside a sentence.
    """
    boundaries = _boundaries(segmented, runs)
    targets = np.array([needle.depth for needle in needles]) * boundaries.at[-1]
    right = np.searchsorted(boundaries.at, targets, side="left").clip(1, len(boundaries.at) - 1)
    nearest = right - (targets - boundaries.at[right - 1] <= boundaries.at[right] - targets)
    spots = [
        _Spot(int(boundaries.at[boundary]), *_spacing(segmented, boundaries, int(boundary))) for boundary in nearest
    ]
    if inside:
        spots = _moved(tokenizer, _haystack(segmented, runs), targets.tolist(), spots)
    texts: list[str] = []
    for i, (needle, spot) in enumerate(zip(needles, spots, strict=True)):
        before = " " if i and spots[i - 1].at == spot.at else spot.before
        after = "" if i + 1 < len(needles) and spots[i + 1].at == spot.at else spot.after
        texts.append(before + needle.text + after)
    ids = tokenizer.encode_batch(texts)
    return [_Inserted(needle, spot.at, own) for needle, spot, own in zip(needles, spots, ids, strict=True)]


def _moved(tokenizer: Tokenizer, haystack: Ids, targets: Sequence[float], spots: Sequence[_Spot]) -> list[_Spot]:
    """The spots, those that are not near their targets moved inside sentences; their order stays."""
    moved: list[_Spot] = []
    for target, boundary in zip(targets, spots, strict=True):
        away = abs(boundary.at - target)
        is_near = away <= NEAR_SHARE * len(haystack)
        found = None if is_near else nearest_place(tokenizer, haystack, target, away)
        # the boundary itself may be the nearest place: it knows more of the white space that belongs there
        spot = boundary if found is None or found.at == boundary.at else _Spot(found.at, *found.spacing)
        moved.append(moved[-1] if moved and moved[-1].at > spot.at else spot)
    return moved


def _haystack(segmented: Segmented, runs: Sequence[_Run]) -> Ids:
    """The tokens of the runs, one after the other."""
    return np.concatenate([segmented.ids[segmented.offsets[run.first] :][: run.tokens] for run in runs])


def _boundaries(segmented: Segmented, runs: Sequence[_Run]) -> _Boundaries:
    """Open boundaries of the filled haystack; its start and its end are always among them."""
    ats, sentences = [], []
    done = 0
    for run in runs:
        numbers = np.arange(run.first, run.last)
        open_ = segmented.kinds[numbers] != CLOSED
        if run.first == 0:
            open_[:1] = True
        ats.append(done + segmented.offsets[numbers[open_]] - segmented.offsets[run.first])
        sentences.append(numbers[open_])
        done += run.tokens
    last = runs[-1]
    is_cut = int(segmented.offsets[last.last] - segmented.offsets[last.first]) != last.tokens
    return _Boundaries(np.append(np.concatenate(ats), done), np.append(np.concatenate(sentences), last.last), is_cut)


def _spacing(segmented: Segmented, boundaries: _Boundaries, boundary: int) -> tuple[str, str]:
    """White space before and after a needle that has a boundary to itself."""
    is_end = boundary == len(boundaries.at) - 1
    sentence = int(boundaries.sentence[boundary])
    if is_end:
        # the tail starts with a blank line of its own
        if boundaries.is_cut:
            return PARAGRAPH, ""
        return ("" if segmented.kinds[sentence] == TRAIL else " "), ""
    piece = segmented.pieces[sentence]
    space = piece[: len(piece) - len(piece.lstrip())]
    if segmented.kinds[sentence] == TRAIL:
        return "", PARAGRAPH if "\n" in space else " "
    return (PARAGRAPH if boundary == 0 else " "), ("" if space else " ")


def _forms(needle: Needle) -> list[str]:
    """Every text that ``_insert`` may make of a needle."""
    spaces = ("", " ", PARAGRAPH)
    return [before + needle.text + after for before in spaces for after in spaces]


def _prompts(
    tokenizer: Tokenizer,
    segmented: Segmented,
    frame: _Frame,
    cases: Sequence[Case],
    runs: Sequence[_Run],
    inserted: Sequence[_Inserted],
    length: int,
) -> list[Prompt]:
    context, placements = _join(segmented, frame.head, runs, inserted)
    _check_arrived(tokenizer, context, inserted, placements)
    shared = array("i", context.tobytes())
    context_hash = hashlib.sha256(context.astype("<i4").tobytes())
    prompts = []
    for case, tail, gold in zip(cases, frame.tails, frame.golds, strict=True):
        whole_hash = context_hash.copy()
        whole_hash.update(np.array(tail, dtype="<i4").tobytes())
        prompts.append(
            Prompt(
                context=shared,
                tail=array("i", tail),
                gold=gold,
                answer_budget=length - len(shared) - len(tail),
                case=case,
                depth_real=_asked(case, inserted, placements).depth_real,
                placements=placements,
                sha256=whole_hash.hexdigest(),
                context_key=context_hash.hexdigest()[:32],
            )
        )
    return prompts


def _join(
    segmented: Segmented, head: list[int], runs: Sequence[_Run], inserted: Sequence[_Inserted]
) -> tuple[Ids, tuple[Placement, ...]]:
    haystack = _haystack(segmented, runs)
    parts: list[Ids] = [np.array(head, dtype=np.int32)]
    placements = []
    done, offset = 0, len(head)
    for needle, at, ids in inserted:
        parts += [haystack[done:at], np.array(ids, dtype=np.int32)]
        offset += at - done
        depth_real = at / len(haystack)
        placements.append(Placement(needle.key, needle.depth, depth_real, offset, len(ids), needle.asked))
        done, offset = at, offset + len(ids)
    return np.concatenate([*parts, haystack[done:]]), tuple(placements)


def _asked(case: Case, inserted: Sequence[_Inserted], placements: Sequence[Placement]) -> Placement:
    """Where the needle went that the case asks for: the one that holds its answer, else the one at its depth."""
    pairs = list(zip(inserted, placements, strict=True))
    holds = [place for item, place in pairs if item.needle.value in case.expected]
    at_depth = [place for _, place in pairs if place.asked and place.depth == case.depth]
    both = [place for place in holds if place.depth == case.depth]
    if not (both or holds or at_depth):
        raise ConfigError(f"the case at depth {case.depth} asks for a needle that its context does not hold.")
    return (both or holds or at_depth)[0]


def _check_arrived(
    tokenizer: Tokenizer, context: Ids, inserted: Sequence[_Inserted], placements: Sequence[Placement]
) -> None:
    """See on the tokens that will be sent that every needle is whole and every value stands in needles only."""
    for item, place in zip(inserted, placements, strict=True):
        start = max(place.token_offset - _WINDOW_TOKENS, 0)
        window = context[start : place.token_offset + place.token_count + _WINDOW_TOKENS]
        seen = tokenizer.decode(window.tolist())
        if item.needle.text not in seen:
            raise CellError(
                "needle_lost", f"the needle {item.needle.text!r} is not in its tokens, which read {seen!r}."
            )
    text = tokenizer.decode(context.tolist()).lower()
    needles = "\n".join(item.needle.text for item in inserted).lower()
    for value in {item.needle.value for item in inserted}:
        wanted, found = count_whole(needles, value.lower()), count_whole(text, value.lower())
        if found != wanted:
            raise CellError(
                "needle_lost",
                f"the value {value!r} stands {found} times in the prompt but {wanted} times in its needles; "
                "the haystack or the instruction gives the answer away.",
            )
