"""``needles``: a haystack made of nothing but distractors that have the shape of the needles (as RULER's hardest).

Keys are an adjective and a noun, such as ``copper-lantern``, so that they are never the city names of real needles.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from itertools import count

from niah.errors import ConfigError
from niah.prompts.haystack import HaystackOptions, HaystackPlugin

SHAPE = "The special magic number for {key} is {value}."
# values have seven digits and do not start with zero
LOWEST_VALUE, VALUE_COUNT = 1_000_000, 9_000_000
SENTENCES_PER_PARAGRAPH = 8


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ADJECTIVES = _words(
    """amber ancient arctic bitter blazing blunt bold brass brave bright brisk bronze calm candid careful chilly
    clever cloudy coastal copper coral cosmic crimson crisp curious dainty dapper daring dazzling deep distant
    dizzy dusty eager early earnest elegant empty faded faint fancy fearless fierce flat floral fluffy foggy
    fragile frosty frugal gentle giant gilded glad glassy gloomy golden graceful grand granite grumpy hasty hazy
    hidden hollow honest humble icy idle indigo ivory jade jolly keen kind lavish lazy leafy lively lonely loud
    loyal lucid lunar marble mellow merry mighty misty modest mossy muddy narrow nimble noble olive opal orange
    pale patient pearl plain polite proud quaint quick quiet rapid rare ripe rosy royal rugged rustic sandy
    scarlet shady sharp shiny silent silver sleepy smooth snowy solar spare spicy steady stormy sturdy subtle
    sunny swift tall tame tidy timid tiny tranquil velvet violet vivid warm wary wide wild windy wise witty
    wooden young zesty"""
)
NOUNS = _words(
    """acorn anchor anvil apron arrow badger bagel balloon banjo barrel basket beacon bell bench bicycle blanket
    bonnet bottle bracelet bramble bridge bucket button cabin cactus camel candle canoe canyon carpet cello
    chimney clover cobbler comet compass cottage cricket crystal cushion daisy dolphin donkey dragon drum easel
    elbow engine falcon feather ferry fiddle flute forest fountain fox gander garden garlic ginger glacier glove
    goblet guitar hammer harbor harp hedge helmet heron hollow horizon iceberg inkwell island jacket jigsaw
    juniper kayak kettle kite ladder lagoon lantern lemon lighthouse lily lizard locket lobster magnet mango
    maple marigold meadow melon mirror mitten monocle mountain mulberry napkin nectar nutmeg oak oboe orchard
    otter owl oyster paddle panther parasol parrot pebble pelican pencil pepper piano pillow pine planet plum
    pocket pony prairie prism pumpkin quarry quilt rabbit radish raven ribbon river robin rocket saddle sandal
    sapphire satchel saucer scarf shovel shuttle sparrow spoon squirrel statue stream sundial table teapot
    thimble thistle tiger timber toast trumpet tulip tunnel turnip turtle umbrella valley vase violin walnut
    waterfall whistle willow window wrench yarn zebra zipper"""
)


class NeedlesOptions(HaystackOptions):
    """Options of ``needles``. ``seed`` picks other keys and values."""

    seed: int = 0


class Needles:
    """Distractors without end, every key once per stream."""

    repeats = False
    language = "en"

    def __init__(self, options: NeedlesOptions) -> None:
        self._seed = options.seed
        content = "\n".join((f"needles 1 {options.seed}", SHAPE, " ".join(ADJECTIVES), " ".join(NOUNS)))
        self.digest = hashlib.sha256(content.encode()).hexdigest()

    def segments(self, stream: int) -> Iterator[str]:
        """Sentences in paragraphs of eight; keys and values by seed and stream alone."""
        # strings seed through SHA-512 and random() is stable between Python versions, unlike choice() and shuffle()
        draw = random.Random(f"niah needles/{self._seed}/{stream}").random
        separator = ""
        for position, key in enumerate(_keys(draw), start=1):
            value = LOWEST_VALUE + int(draw() * VALUE_COUNT)
            yield separator + SHAPE.format(key=key, value=value)
            separator = "\n\n" if position % SENTENCES_PER_PARAGRAPH == 0 else " "


def _keys(draw: Callable[[], float]) -> Iterator[str]:
    """Every pair of adjective and noun once, in a drawn order; then every pair again behind one more adjective."""
    pairs = [f"{adjective}-{noun}" for adjective in ADJECTIVES for noun in NOUNS]
    prefix = ""
    for cycle in count(1):
        marks = [draw() for _ in pairs]
        for index in sorted(range(len(pairs)), key=marks.__getitem__):
            yield prefix + pairs[index]
        prefix = _prefix(cycle)


def _prefix(cycle: int) -> str:
    """The cycle's number written in adjectives as digits, so that no key comes twice."""
    words = []
    while cycle:
        cycle, digit = divmod(cycle - 1, len(ADJECTIVES))
        words.append(ADJECTIVES[digit])
    return "".join(word + "-" for word in reversed(words))


def open_needles(options: NeedlesOptions, argument: str) -> Needles:
    """Open the distractors.

    Raises:
        ConfigError: something follows the name; ``needles`` takes no argument.
    """
    if argument:
        raise ConfigError(f"haystack 'needles' takes no argument, but got {argument!r}: use --haystack needles.")
    return Needles(options)


PLUGIN = HaystackPlugin(
    name="needles",
    summary="Nothing but distractors in the needles' own shape, each key once.",
    options=NeedlesOptions,
    open=open_needles,
    is_made=True,
)
