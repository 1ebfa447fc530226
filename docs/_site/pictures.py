"""Pictures for the dark: a second file of each drawing, in which ink and paper have changed places.

Greys between black ink and white paper are mirrored; colours stay, as they are told apart by a legend.
"""

import re

INK, PAPER = (0xE6, 0xE3, 0xDC), (0x16, 0x18, 0x1C)
GREY = 28
"""Colours whose channels are no further apart than this are greys."""
NAMED = {"white": "#ffffff", "black": "#000000"}
COLOUR = re.compile(r"""((?:fill|stroke)(?::\s*|=["']))(#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b|white\b|black\b)""")
PICTURE = re.compile(r"!\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)\.svg\)")


def dark(svg: str) -> str:
    """The drawing on dark paper."""
    svg = COLOUR.sub(lambda match: match[1] + _mirrored(NAMED.get(match[2], match[2])), svg)
    root = re.search(r"<svg\b[^>]*>", svg)
    if root is None or " fill=" in root[0]:
        return svg
    return svg.replace("<svg", f'<svg fill="{_hex(INK)}"', 1)  # what has no colour is black otherwise


def both(markdown: str) -> str:
    """The page with each drawing in a light and in a dark version, of which one is shown."""
    return PICTURE.sub(r"![\1](\2.svg#only-light)![\1](\2-dark.svg#only-dark)", markdown)


def _mirrored(colour: str) -> str:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[i : i + 2], 16) for i in (0, 2, 4)]
    if max(channels) - min(channels) > GREY:
        return colour
    level = sum(channels) / (3 * 255)
    return _hex(tuple(round(ink + level * (paper - ink)) for ink, paper in zip(INK, PAPER, strict=True)))


def _hex(channels: tuple[int, ...]) -> str:
    return "#" + "".join(f"{channel:02x}" for channel in channels)
