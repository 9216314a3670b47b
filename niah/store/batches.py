"""``batches.jsonl``: batches that were submitted, and what each of their requests asked.

A line is on disk before the request that it stands for is sent, so that whatever is paid for is found again by the next
run. Half a line, as a killed writer leaves it, stands for nothing that was sent yet or is found again; it is left out.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from niah.errors import StoreError
from niah.store.folder import RunFolder
from niah.types import Case, Prompt

JOURNAL = "batches.jsonl"


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One request of a batch: its cell, and of its prompt what a row tells.

    Attributes:
        attempt: number of the row that its result becomes.
        gold: ids of the expected continuation.
    """

    cell: str
    attempt: int
    depth_real: float
    prompt_tokens: int
    answer_budget: int
    sha256: str
    counted_by: str
    gold: tuple[int, ...]

    @staticmethod
    def of(cell: str, attempt: int, prompt: Prompt) -> BatchRequest:
        """Without the tokens, which are no longer needed once they are sent."""
        return BatchRequest(
            cell,
            attempt,
            prompt.depth_real,
            prompt.token_count,
            prompt.answer_budget,
            prompt.sha256,
            prompt.counted_by,
            prompt.gold,
        )

    def prompt(self, case: Case) -> Prompt:
        """The prompt as far as a row needs it: without its tokens."""
        return Prompt(
            context=array("i"),
            tail=array("i"),
            gold=self.gold,
            answer_budget=self.answer_budget,
            case=case,
            depth_real=self.depth_real,
            placements=(),
            sha256=self.sha256,
            context_key="",
            counted=self.prompt_tokens,
            counted_by=self.counted_by,
        )

    def to_json(self) -> list[Any]:
        """A list, since there may be thousands."""
        return [*(getattr(self, item.name) for item in fields(self)[:-1]), list(self.gold)]

    @staticmethod
    def from_json(data: Sequence[Any]) -> BatchRequest:
        """Raises ``ValueError`` or ``TypeError`` for what is none."""
        cell, attempt, depth_real, prompt_tokens, answer_budget, sha256, counted_by, gold = data
        return BatchRequest(
            str(cell),
            int(attempt),
            float(depth_real),
            int(prompt_tokens),
            int(answer_budget),
            str(sha256),
            str(counted_by),
            tuple(int(token) for token in gold),
        )


@dataclass
class Batch:
    """A batch of this run.

    Attributes:
        label: our own name of it; ``LABEL-N`` is the custom id of request N.
        batch_id: the service's; None where it is not known whether it arrived.
        submitted_at: Unix seconds before it was.
    """

    label: str
    kv: str
    submitted_at: float
    requests: tuple[BatchRequest, ...] = field(repr=False)
    batch_id: str | None = None

    def request_of(self, custom_id: str) -> BatchRequest | None:
        """The request of a custom id; None where it is not one of this batch."""
        label, _, number = custom_id.rpartition("-")
        ours = label == self.label and number.isascii() and number.isdigit() and int(number) < len(self.requests)
        return self.requests[int(number)] if ours else None


class BatchJournal:
    """The journal of one run folder."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def pending(self, kv: str) -> list[Batch]:
        """Batches of a setting whose results have not become rows, oldest first.

        Raises:
            StoreError: a line is damaged: what it stands for may have been paid for.
        """
        return [batch for batch in self._read()[0].values() if batch.kv == kv]

    def known_ids(self) -> set[str]:
        """Ids of all batches that were ever submitted or found for this run; raises as ``pending``."""
        return self._read()[1]

    def _read(self) -> tuple[dict[str, Batch], set[str]]:
        found: dict[str, Batch] = {}
        known: set[str] = set()
        lines = self._bytes().split(b"\n")
        for number, (line, following) in enumerate(zip(lines, [*lines[1:], b"torn"], strict=True), 1):
            if not line:
                continue
            try:
                entry = json.loads(line)
                _apply(found, entry)
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as err:
                # a whole line is followed by an empty one or by the file's end, half a one by neither
                if following == b"":
                    where = f"{str(self._folder.path / JOURNAL)!r}: line {number}"
                    raise StoreError(
                        f"{where} is damaged, and the batch that it stands for may be paid for. Restore it, or remove "
                        "the file: cells without a row are then asked again."
                    ) from err
                continue
            if entry["event"] == "arrived":
                known.add(str(entry["id"]))
        return found, known

    def announce(self, batch: Batch) -> None:
        """A batch is about to be submitted."""
        requests = [request.to_json() for request in batch.requests]
        head = {"event": "sending", "label": batch.label, "kv": batch.kv, "at": batch.submitted_at}
        self._append({**head, "cells": requests})

    def arrived(self, batch: Batch, batch_id: str) -> None:
        """The service has it."""
        batch.batch_id = batch_id
        self._append({"event": "arrived", "label": batch.label, "id": batch_id})

    def over(self, batch: Batch, how: str) -> None:
        """Nothing more will come of it: ``collected``, ``refused``, ``lost``."""
        self._append({"event": "over", "label": batch.label, "how": how})

    def _bytes(self) -> bytes:
        path = self._folder.path / JOURNAL
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as err:
            raise StoreError(f"{str(path)!r} cannot be read: {err}. Restore it, or run again with --fresh.") from err

    def _append(self, data: Mapping[str, Any]) -> None:
        self._folder.lock()
        path = self._folder.file(JOURNAL)
        try:
            # a killed writer may have left half a line: each line begins with a break of its own, see _read
            with path.open("ab") as file:
                file.write(b"\n" + json.dumps(data, separators=(",", ":")).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as err:
            reason = (err.strerror or str(err)).lower()
            raise StoreError(f"cannot write {str(path)!r}: {reason}. Free some space or permit writing.") from err


def _apply(found: dict[str, Batch], line: Mapping[str, Any]) -> None:
    label = str(line["label"])
    if line["event"] == "sending":
        requests = tuple(BatchRequest.from_json(item) for item in line["cells"])
        found[label] = Batch(label, str(line["kv"]), float(line["at"]), requests)
    elif line["event"] == "arrived":
        found[label].batch_id = str(line["id"])
    elif line["event"] == "over":
        found.pop(label, None)
