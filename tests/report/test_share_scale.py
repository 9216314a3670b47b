"""The scale that the live page gets: one color a percent, as the maps of the report have it."""

from __future__ import annotations

import pytest

from niah.report.palette import Palette, share_color, share_scale, stops


@pytest.mark.parametrize("palette", ["cividis", "classic"])
def test_a_color_and_its_ink_for_each_percent(palette: Palette) -> None:
    scale = share_scale(palette)
    assert len(scale) == 101
    assert (scale[0][0], scale[100][0]) == (stops(palette)[0], stops(palette)[-1])
    for percent in (1, 37, 50, 99):
        color = share_color(percent / 100, palette)
        assert scale[percent] == (color.hex, color.ink)
