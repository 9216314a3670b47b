"""``noise``: five short sentences over and over, the filler text of RULER's simplest tasks (Hsieh et al. 2024).

The sentences are our own; the idea is that nothing in the haystack competes with the needle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from niah.errors import ConfigError
from niah.prompts.haystack import HaystackOptions, HaystackPlugin

SENTENCES = (
    "The hills are quiet.",
    "The rain is soft.",
    "The road is long.",
    "We walk a while.",
    "Then we walk back.",
)


class NoiseOptions(HaystackOptions):
    """``noise`` has no options."""


class Noise:
    """The five sentences in a circle; a stream only chooses which comes first."""

    repeats = True
    language = "en"

    def __init__(self) -> None:
        self.digest = hashlib.sha256("\n".join(("noise", *SENTENCES)).encode()).hexdigest()

    def segments(self, stream: int) -> Iterator[str]:
        """Sentences parted by spaces, without end."""
        position = stream % len(SENTENCES)
        yield SENTENCES[position]
        while True:
            position = (position + 1) % len(SENTENCES)
            yield " " + SENTENCES[position]


def open_noise(options: NoiseOptions, argument: str) -> Noise:  # noqa: ARG001 - sources are opened alike
    """Open the filler text.

    Raises:
        ConfigError: something follows the name; ``noise`` takes no argument.
    """
    if argument:
        raise ConfigError(f"haystack 'noise' takes no argument, but got {argument!r}: use --haystack noise.")
    return Noise()


PLUGIN = HaystackPlugin(
    name="noise",
    summary="Five short filler sentences, repeated for ever (as in RULER).",
    options=NoiseOptions,
    open=open_noise,
    is_made=True,
)
