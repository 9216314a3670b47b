"""The small world that a chronicle tells of: people and places with made-up names, months, weather and open threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from niah.haystacks.chronicle.seasons import MONTHS, SEASONS, WEATHERS

T = TypeVar("T")
CAST_SIZE = 14
PLACE_COUNT = 7
# scenes after which someone new comes, and the scenes between two changes of place
NEWCOMER_EVERY = 7
NEW_PLACE_EVERY = 29

MEN_ONLY = frozenset({"ferryman", "fisherman", "schoolmaster", "gamekeeper", "sexton", "drover"})
WOMEN_ONLY = frozenset({"dairywoman", "laundress", "midwife"})

NAMES: Mapping[str, str] = {
    "men": """Aldren Osric Tobin Corvan Jasper Wilmot Barnaby Edric Hollis Garrick Silas Ambrose Fenwick Hob
        Rufus Tancred Odo Piers Lambert Giles Crispin Merrick Ned Josiah Enoch Caleb Matthias Godfrey
        Ivo Alaric Bertram Clement Dunstan Eustace Fabian Gervase Humphrey Isidore Jolyon Kenelm
        Leofric Magnus Nicol Orrin Percival Quentin Roderic Septimus Theobald Ulric Valentine Walter
        Wystan Zachary Abel Benet Cuthbert Dickon Elias Felix Griffin Hamo Jethro Kit Lorcan Micah
        Noll Oswin Pascoe Ralf Seth Tam Uriah Vane Wat Yorick Anselm Brom Conan Drogo Emmet Faramund
        Gamel Hew Ingram Jory Keir Luke Morcant Norris Owain Perrin Rafe Simkin Torold Umfrey""",
    "women": """Mirel Hester Ysolde Tamsin Agnes Prudence Rosamund Edith Linnet Marjory Winifred Cicely Dorcas
        Maud Thea Isabeau Bryony Sabina Elowen Gwenna Judith Keziah Lettice Merrin Nell Orla Petronel
        Rowena Sidony Tabitha Ursel Verity Wilmotta Amabel Beatrix Clarice Damaris Emmeline Frideswide
        Gillian Hepzibah Idony Jessamy Kerensa Lavender Millicent Nerys Ottilie Philippa Queenie Ruth
        Susanna Thomasin Una Wenna Zillah Annis Barbary Constant Dulcie Etheldred Fenella Griselda
        Honor Ida Joan Katrin Lowena Mabel Nan Olwen Peg Richenda Sibyl Theda Ulla Vashti Winnow
        Abigail Bess Cordula Dinah Esme Flora Grizel Hilde Ismay Jennet Lucet Morwenna Nessa Phoebe""",
    "surname_head": """Thorn Hazel Marl Fen Brack Gorse Tarn Hollin Pell Quill Sedge Ash Birk Cald Drey Elder Farrow
        Garth Heath Ivel Kest Lark Moss Nether Oster Plover Rook Sallow Teal Under Vell Wether Yarrow
        Bram Cropper Dun Eskel Flint Grim Hurst Jarl Knap Lang Mead Orch Pender Rush Swale Thistle
        Umber Venn Whin Bleak Chaffer Docken Fallow Gatter Hopper Kettle Lobb Mallow Nuttall Pike Rudd
        Stoat Tolly Wain""",
    "surname_tail": """by combe low wright garth mere ridge cott row dale shaw croft wood gate lock bane well side
        man lea""",
    "place_head": """Vellin Cadder Quarn Ostle Thrim Eskmar Dunnow Harrab Ibber Jellow Kirrin Lathen Mordle Nessle
        Orrin Pendlow Quell Rathen Saltry Tolver Uddle Varrow Wexmoor Yarle Aster Brindle Corra Derrow
        Elmsk Fosk Gannow Hethel Ingle Jarra Kessle Lorring Mickle Nuthra Ockle Perrow Rushel Skerrin
        Tarroch Ulver Venwith Wathel Arkle Bellerin Cotha Dranno Ettle Farrin Gorran Hollow Issen
        Kelder Lannow Merrith Norrow Oddle Penhal Rendle Sorrel Trennow Usk Vandle Whissel Yeddle""",
    "place_tail": """wick leigh mere by thwaite combe how stow holm gill beck rigg worth field stead cote hythe
        pool hallow garth scar wold""",
    "river": """Arrow-water Bourle Carrow Derrin Essel Fleem Gannel Hobbe Isk Jarrow-beck Kennel Leddon Mease
        Nadder-brook Ollen Pennow Quey Rother-stream Sarn Tivvy Ullen Velde Wharn Yeo-water Addle
        Brathe Cuckmill Dovery Ettern Fenbourne Glaze Harrowbeck Irt Kestrel-brook Lyde Mimmow
        Nene-water Orle Parrit Rill Sence Tavy-brook""",
    "sign_colour": """Black White Red Blue Golden Green Spotted Silver Old Lame Laughing Sleeping Three-Legged
        Thirsty Merry""",
    "sign_beast": """Heifer Heron Badger Plough Anvil Ram Goose Hare Swan Bell Wheatsheaf Barrel Fox Otter Hound
        Kettle Mitten Ladder Pheasant Cartwheel Drake Lantern Beehive Millstone Mermaid Bellows""",
}


class Trade(NamedTuple):
    """A trade by its title: the place of work and the name of its verb phrases in the grammar."""

    title: str
    workplace: str
    tasks: str


class Kin(NamedTuple):
    """A relation, from "sister" to "husband", by given name."""

    relation: str
    given: str


@dataclass(slots=True, eq=False)
class Place:
    """A village with its inn and its river."""

    name: str
    inn: str
    river: str


@dataclass(slots=True, eq=False)
class Person:
    """Someone in the chronicle. ``last_sentence`` and ``last_scene`` say when they were last named."""

    given: str
    surname: str
    female: bool
    trade: Trade
    temper: str
    home: Place
    kin: list[Kin] = field(default_factory=list)
    married: bool = False
    last_sentence: int = -9
    last_scene: int = -999
    trade_told: int = -999


@dataclass(slots=True)
class Thread:
    """A scene's sequel that is still owed, with those who took part."""

    due: int
    scene: str
    first: Person
    second: Person
    noun: str
    quality: str
    far: Place


class World:
    """People, places, month and weather; moved on by ``advance``. All chance comes from ``random``."""

    def __init__(self, random: Callable[[], float], trades: Sequence[Trade], tempers: Sequence[str]) -> None:
        self.random = random
        self._trades = trades
        self._tempers = tempers
        self._tables = {name: words.split() for name, words in NAMES.items()}
        self._recent_places: deque[str] = deque(maxlen=200)
        self.day = int(random() * 360)
        self.scene = 0
        self.weather = "dry"
        self.places = [self._new_place() for _ in range(PLACE_COUNT)]
        self.cast: list[Person] = []
        while len(self.cast) < CAST_SIZE:
            self.cast.append(self._new_person())
        self.threads: list[Thread] = []

    @property
    def month(self) -> str:
        return MONTHS[self.day // 30 % 12]

    @property
    def past_month(self) -> str:
        return MONTHS[(self.day // 30 - 1 - int(self.random() * 3)) % 12]

    @property
    def season(self) -> str:
        # December to February are winter
        return SEASONS[(self.day // 30 + 1) % 12 // 3]

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.random() * len(items))]

    def name(self, table: str) -> str:
        return self.pick(self._tables[table])

    def stranger_name(self) -> str:
        """A full name of somebody outside the cast."""
        given = self.name("women" if self.random() < 0.5 else "men")
        return f"{given} {self._surname()}"

    def advance(self) -> None:
        """Let a day or some pass: the weather changes, people come and go."""
        self.scene += 1
        self.day += int(self.random() * 5)
        if self.random() > 0.6:
            self.weather = self.pick(WEATHERS[self.season])
        if self.scene % NEWCOMER_EVERY == 0:
            stalest = min(self.cast, key=lambda p: p.last_scene)
            self.cast.remove(stalest)
            self.cast.append(self._new_person())
        if self.scene % NEW_PLACE_EVERY == 0:
            self.places.pop(0)
            self.places.append(self._new_place())

    def due_thread(self) -> Thread | None:
        """The oldest sequel that is due, taken from the list."""
        for thread in self.threads:
            if thread.due <= self.scene:
                self.threads.remove(thread)
                return thread
        return None

    def other(self, first: Person) -> Person:
        """Someone else: more often of the other sex, so that pronouns stay clear, and from the same village."""
        others = [p for p in self.cast if p is not first and p.given != first.given]
        liked = [p for p in others if p.female != first.female]
        near_by = [p for p in liked if p.home is first.home]
        if near_by and self.random() < 0.4:
            return self.pick(near_by)
        return self.pick(liked if liked and self.random() < 0.8 else others)

    def far_from(self, here: Place) -> Place:
        return self.pick([p for p in self.places if p is not here])

    def _surname(self) -> str:
        head, tail = self.name("surname_head"), self.name("surname_tail")
        # "Oster" and "row" would double a letter across the seam three times
        return head + tail if head[-1] != tail[0] else head + "er" + tail

    def _new_place(self) -> Place:
        while True:
            head, tail = self.name("place_head"), self.name("place_tail")
            name = head + (tail if head[-1] != tail[0] else "en" + tail)
            if name not in self._recent_places:
                break
        self._recent_places.append(name)
        inn = f"the {self.name('sign_colour')} {self.name('sign_beast')}"
        return Place(name, inn, self.name("river"))

    def _new_person(self) -> Person:
        female = self.random() < 0.5
        taken = {p.given for p in self.cast}
        given = self.name("women" if female else "men")
        while given in taken:
            given = self.name("women" if female else "men")
        surname = self._surname()
        person = Person(
            given, surname, female, self._trade(female=female), self.pick(self._tempers), self.pick(self.places)
        )
        for relation, is_female in (("sister", True), ("brother", False)):
            if self.random() < 0.5 or relation == "sister":
                person.kin.append(Kin(relation, self._kin_name(taken | {given}, female=is_female)))
        if self.random() < 0.5:
            person.married = True
            person.kin.append(Kin("husband" if female else "wife", self._kin_name(taken, female=not female)))
            for child, is_female in (("daughter", True), ("son", False)):
                if self.random() < 0.5:
                    person.kin.append(Kin(child, self._kin_name(taken | {given}, female=is_female)))
        return person

    def _trade(self, *, female: bool) -> Trade:
        other = MEN_ONLY if female else WOMEN_ONLY
        return self.pick([t for t in self._trades if t.title not in other])

    def _kin_name(self, taken: set[str], *, female: bool) -> str:
        name = self.name("women" if female else "men")
        while name in taken:
            name = self.name("women" if female else "men")
        return name
