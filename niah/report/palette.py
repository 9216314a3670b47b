"""Colors and names that all pictures have in common, without a plotting library."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from niah.errors import ConfigError

Palette = Literal["cividis", "classic"]

# seventeen samples of cividis (Nunez, Anderton, Renslow, PLoS ONE 13(7), 2018): evenly growing lightness, so that it
# reads alike with and without color vision, and in grey print
# fmt: off
CIVIDIS = [
    "#00224e", "#002e6a", "#1a386f", "#32436d", "#434e6c", "#535a6d", "#61656f", "#6f7073", "#7d7c78",
    "#8c8878", "#9b9476", "#aba072", "#bcae6c", "#cdbb63", "#dec958", "#f0d846", "#fee838",
]
# fmt: on
# red, yellow, green of the first needle heatmaps (2023): known to readers, but ends look alike to the color-blind
CLASSIC = ["#f0496e", "#ebb839", "#0cd79f"]
# orange to purple, from ColorBrewer's PuOr without its darkest ends: safe for all common color deficiencies
WORSE_TO_BETTER = ["#b25706", "#e08214", "#fcb761", "#fee0b6", "#f6f6f7", "#d8daeb", "#b1aad1", "#8073ac", "#532687"]
# differences of this size and more have the strongest color; 1 would make a drop of ten points invisible
DIFFERENCE_LIMIT = 0.5
# how far towards white a difference goes that may be chance
PALING = 0.72

# Okabe and Ito's eight colors less black and yellow, which one of light and dark pages swallows
SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"]
EMPTY = "#e4e4e4"


@dataclass(frozen=True, slots=True)
class RGB:
    """A color, 0–255 a channel."""

    red: int
    green: int
    blue: int

    @property
    def hex(self) -> str:
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"

    @property
    def ink(self) -> str:
        """Black or white, whichever has the higher contrast on this color (WCAG 2 relative luminance)."""
        channels = (self.red / 255, self.green / 255, self.blue / 255)
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        return "#ffffff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "#000000"


def palette_named(name: str) -> Palette:
    """The palette of that name.

    Raises:
        ConfigError: there is none.
    """
    if name == "cividis":
        return "cividis"
    if name == "classic":
        return "classic"
    raise ConfigError(f"no palette named {name!r}; use cividis or classic.")


def stops(palette: Palette) -> list[str]:
    """The colors of a palette from 0 to 1, evenly spaced."""
    return CLASSIC if palette == "classic" else CIVIDIS


def share_color(share: float, palette: Palette = "cividis") -> RGB:
    """The color of an accuracy on the fixed scale from 0 to 1."""
    return blend(stops(palette), share)


def share_scale(palette: Palette) -> list[tuple[str, str]]:
    """The scale in whole percents from 0 to 100: a color, and black or white for what is written on it."""
    return [(color.hex, color.ink) for color in (share_color(percent / 100, palette) for percent in range(101))]


def difference_color(delta: float) -> RGB:
    """The color of a difference of accuracies, -1 to 1: orange is worse, purple is better."""
    return blend(WORSE_TO_BETTER, (delta / DIFFERENCE_LIMIT + 1) / 2)


def series_color(index: int) -> str:
    """The color of the n-th line of a figure."""
    return SERIES[index % len(SERIES)]


def file_stem(kv: str) -> str:
    """A KV setting as part of a file name: ``streaming(sinks=4)`` becomes ``streaming-sinks-4``."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", kv).strip("-.") or "kv"


def blend(colors: Sequence[str], position: float) -> RGB:
    """The color at a position from 0 to 1 along evenly spaced ones; beyond the ends it stays at the end."""
    place = min(max(position, 0.0), 1.0) * (len(colors) - 1)
    index = min(int(place), len(colors) - 2)
    part = place - index
    low, high = (tuple(bytes.fromhex(c[1:])) for c in colors[index : index + 2])
    return RGB(*(round(a + (b - a) * part) for a, b in zip(low, high, strict=True)))
