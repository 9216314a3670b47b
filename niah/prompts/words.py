"""Keys and values of needles: names of real cities; numbers, rare words and UUIDs; all drawn from a seed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from random import Random
from typing import Literal

from niah.errors import ConfigError
from niah.grid import seed_from
from niah.prompts.task import Collides

Values = Literal["number", "word", "uuid"]


def _table(words: str) -> tuple[str, ...]:
    return tuple(words.split())


# One word each, in ASCII, and none that is also an everyday English word.
CITIES = _table(
    """
    Aachen Aalborg Aarhus Abidjan Abuja Acapulco Accra Adana Adelaide Agadir Agra Ahmedabad Ajaccio Akita Albuquerque
    Aleppo Algiers Alicante Almaty Amiens Amman Amsterdam Anchorage Ankara Antalya Antananarivo Antwerp Aqaba Arequipa
    Arkhangelsk Asmara Astana Asuncion Athens Auckland Augsburg Avignon Baghdad Baku Bamako Bandung Bangkok
    Banjul Barcelona Barranquilla Basel Basra Beirut Belfast Belgrade Belmopan Bengaluru Benghazi Bergamo Berlin Bern
    Bialystok Bilbao Birmingham Bishkek Bissau Bogota Bologna Bonn Bordeaux Bratislava Braunschweig Brazzaville
    Bremen Brescia Brisbane Brno Brussels Bucaramanga Bucharest Budapest Bujumbura Bulawayo Bursa Busan Bydgoszcz
    Cairo Calgary Canberra Cancun Caracas Cardiff Cartagena Casablanca Catania Cebu Changsha Chemnitz Chengdu Chennai
    Chisinau Chittagong Chongqing Cincinnati Clermont Cochabamba Colombo Conakry Copenhagen Coventry Cuenca
    Cusco Cuttack Dakar Dalian Damascus Debrecen Delhi Denpasar Detroit Dhaka Dodoma Doha Dortmund Dresden
    Dubai Dublin Dubrovnik Duisburg Dunedin Durban Dushanbe Edinburgh Edmonton Eindhoven Entebbe Erfurt Esfahan
    Eskisehir Espoo Ferrara Fortaleza Frankfurt Freetown Fukuoka Funafuti Gaborone Gaziantep Gdansk Gdynia Geneva
    Genoa Ghent Giza Glasgow Goiania Gothenburg Grenoble Groningen Guadalajara Guangzhou Guayaquil Haifa Haiphong
    Hamburg Hamilton Hangzhou Hanoi Hanover Harare Harbin Hargeisa Havana Helsinki Hiroshima Hobart Honiara Honolulu
    Houston Hyderabad Ibadan Incheon Innsbruck Iquitos Irkutsk Islamabad Istanbul Izmir Jaipur Jakarta Jeddah
    Jerusalem Johannesburg Juba Kabul Kampala Kandahar Kanpur Kaohsiung Karachi Karlsruhe Kathmandu Katowice Kaunas
    Kazan Khartoum Kharkiv Kigali Kingston Kinshasa Kisumu Kobe Kolkata Krakow Kumasi Kyiv Kyoto Lagos Lahore
    Lausanne Leeds Leicester Leipzig Libreville Lilongwe Limassol Linz Lisbon Liverpool Ljubljana Lome Lublin
    Lucknow Lusaka Luxor Lviv Lyon Maastricht Madrid Malabo Malmo Managua Manaus Manchester Mandalay Manila Maputo
    Maracaibo Marrakesh Marseille Maseru Mashhad Mbabane Medan Medellin Medina Melbourne Merida Milan Milwaukee
    Minneapolis Minsk Mogadishu Mombasa Monrovia Monterrey Montevideo Montreal Moroni Moscow Mosul Mumbai Munich Murcia
    Muscat Nagasaki Nagoya Nagpur Nairobi Nanjing Nantes Naples Nashville Ndola Niamey Nicosia Novosibirsk Nukualofa
    Nuremberg Nuuk Oaxaca Odense Odesa Omsk Oran Osaka Oslo Ostrava Ottawa Ouagadougou Oulu Palermo Palikir
    Paramaribo Paris Pattaya Penang Perth Perugia Pescara Peshawar Philadelphia Pittsburgh Plovdiv Podgorica Porto
    Poznan Prague Praia Pretoria Pristina Puebla Pune Pyongyang Qingdao Quito Rabat Ravenna Recife Reykjavik Riga
    Rijeka Riyadh Rome Rosario Rostock Rotterdam Rouen Salzburg Samara Samarkand Sapporo Sarajevo Seattle Sendai Seoul
    Seville Shanghai Sheffield Shenzhen Shiraz Skopje Sofia Stavanger Stockholm Strasbourg Stuttgart Surabaya Surat
    Suva Sydney Szczecin Szeged Tabriz Taipei Tallinn Tampere Tangier Tartu Tashkent Tbilisi Tegucigalpa Tehran
    Thessaloniki Thimphu Tianjin Tijuana Timisoara Tirana Tokyo Toronto Toulouse Tripoli Tromso Trondheim Tunis Turin
    Turku Uppsala Utrecht Vaduz Valencia Valletta Valparaiso Vancouver Varanasi Varna Venice Verona Vienna Vientiane
    Vilnius Vladivostok Warsaw Wellington Windhoek Winnipeg Wroclaw Wuhan Yaounde Yekaterinburg Yerevan Yokohama Zagreb
    Zanzibar Zaragoza Zurich
    """
)

# Uncommon nouns in lower case; none is another's plural, and none stands in a needle's own sentence.
VALUE_WORDS = _table(
    """
    aardvark abacus abalone acanthus accordion acrobat adobe agaric agouti albacore alchemist alembic algebra almanac
    aloe alpaca amaranth ambergris amethyst ammonite amphora anaconda anchovy anemone angelfish anteater antimony
    aphid apothecary apricot aqueduct arachnid arcade archipelago armadillo arpeggio artichoke asbestos asparagus
    asteroid astrolabe aubergine auklet aurochs avocado axolotl azalea baboon badminton bagpipe balalaika balsam bamboo
    bandicoot banjo barnacle barometer barracuda basalt basilisk bassoon bathysphere bauxite bazooka begonia belladonna
    bergamot beryl bison bivalve blowfish bobolink bobsled bolero bonobo boomerang borax bouillon bourbon bratwurst
    brioche broccoli bromide bulldozer bumblebee bungalow cabaret cacao cactus cadmium calabash calico calliope calypso
    camellia camphor capacitor capybara caramel caravel carburetor cardamom caribou carnation cartilage cashew cassava
    cassowary castanet catamaran caviar celeriac cello centipede ceviche chameleon chamomile chandelier cheetah chicory
    chimera chimpanzee chinchilla chipmunk chlorine chloroform chromium chrysalis cicada cinnabar clarinet clavichord
    cobalt cockatoo cockatrice cocoon coelacanth colander coriander cormorant cornucopia cortisol coyote cranberry
    crocus cucumber cumin curlew cuttlefish cyanide cyclotron cymbal cypress dachshund daffodil dahlia dandelion
    decathlon didgeridoo dinghy dingo dirigible dodecahedron dodo dolphin dromedary drosophila dulcimer dynamo
    earwig echidna eclair edelweiss eggplant eland elixir emu enchilada endive enzyme ermine eucalyptus falafel fandango
    fennel feldspar fibula filament finch firefly flamenco flamingo flotilla fluoride flugelhorn foxglove freesia fresco
    frigate fuchsia fugue fungus fuselage galleon gargoyle gazelle gazpacho gecko geranium gerbil geyser gherkin
    gibbon ginseng giraffe gladiolus glockenspiel glucose gondola gorgonzola gorilla granita graphite grenadine
    guacamole guanaco guava gumbo gyroscope habanero haddock halibut halogen hamster harmonica harpoon harpsichord
    hashbrown hazelnut hedgehog helicopter helium hemlock heron hibiscus hippocampus hologram honeydew hornbill
    hovercraft hummus hyacinth hydrangea hydrogen hyena hypotenuse ibex ibis iceberg iguana impala indigo inkwell
    insulin iodine isotope jacaranda jackal jackfruit jaguar jalapeno jasmine javelin jellyfish jicama jonquil jujube
    juggernaut juniper kaleidoscope kangaroo kayak keratin kestrel ketchup kimono kiwi koala kohlrabi kookaburra krill
    krypton kumquat labyrinth lacquer lacrosse lambada lasagna lemming lemur leopard lichen limousine lithium
    llama lobster locust lozenge lychee lymphocyte macadamia macaroni macaw magenta magnesium magnolia mahogany
    mammoth manatee mandolin mandrill mango mangrove marigold marimba marionette marlin marmoset mastodon
    maypole mazurka meerkat melatonin menhir meringue metronome micron millipede minaret minestrone minotaur mistletoe
    molybdenum mongoose monocle monsoon moose mozzarella mulberry mustang myrrh nacho narwhal nasturtium nautilus nebula
    nectarine neon neutrino newt nickel nitrogen nougat nylon oboe obsidian ocarina ocelot octagon octopus okapi okra
    oleander onyx opossum orangutan orchid oregano origami oscilloscope osprey ostrich otter oxygen ozone paella pagoda
    palindrome pangolin papaya paprika papyrus parabola parakeet parsec parsnip passerine patchouli pecan pegasus
    pelican pendulum penguin periscope periwinkle persimmon petunia phosphorus photon piccolo pimento piranha pistachio
    plankton platypus plutonium polka polonium pomegranate porcupine porpoise potassium prawn pretzel primrose prism
    protractor puffin pulsar puma python quagga quahog quark quartz quasar quesadilla quetzal quinine quinoa quokka
    raccoon radish ravioli rhinoceros rhododendron rhombus rhubarb risotto rosemary rutabaga saffron salamander
    samovar samurai sarcophagus sardine sarsaparilla satsuma saxophone scallion scarab scorpion seahorse sequoia
    serotonin shallot shrapnel silicon sitar skunk sloth snorkel sombrero sorbet sousaphone soybean spaghetti spinach
    stalactite starfish stegosaurus stethoscope stingray submarine sudoku sultana sundae sushi syringe tadpole
    tamarind tambourine tangerine tango tapioca tapir tarantula tarragon telescope termite terracotta theremin
    thesaurus titanium tofu tomahawk topaz tornado tortilla toucan trapezoid trampoline triceratops trombone truffle
    tsunami tuba tundra tungsten turbine turmeric turquoise typhoon ukulele umbra unicorn uranium vanadium vanilla
    velociraptor vermicelli vermouth viaduct vibraphone viper vulture wallaby walrus warthog wasabi waltz weevil
    wildebeest wisteria wolverine wombat xenon xylophone yak yogurt yucca zebra zeppelin zinc zinnia zircon zither
    zucchini zygote
    """
)

# a haystack made of numbers could refuse every candidate; better an error than no end
_MAX_DRAWS = 1000


def draw_keys(count: int, seed: int, collides: Collides) -> list[str]:
    """Distinct city names that do not stand in the haystack; a colliding one is replaced, the others stay.

    Raises:
        ConfigError: fewer than ``count`` cities are left.
    """
    return _draw_from(CITIES, count, Random(seed_from("keys", seed)), collides, "city names")


def draw_values(kind: Values, count: int, seed: int, collides: Collides) -> list[str]:
    """Distinct values that do not stand in the haystack: 7-digit numbers, rare words, or version 4 UUIDs.

    Raises:
        ConfigError: fewer than ``count`` values are left.
    """
    if kind == "word":
        return _draw_from(VALUE_WORDS, count, Random(seed_from("words", seed)), collides, "words")
    values: list[str] = []
    for i in range(count):
        # a generator for each place: a replaced candidate must not shift the values after it
        rng = Random(seed_from(kind, seed, i))
        make = {"number": lambda rng=rng: draw_number(7, rng), "uuid": lambda rng=rng: _uuid(rng)}[kind]
        values.append(draw_free(make, lambda value: value in values or collides(value), f"{kind}s"))
    return values


def draw_number(digits: int, rng: Random) -> str:
    """A number of so many digits that does not start with zero."""
    return str(rng.randrange(10 ** (digits - 1), 10**digits))


def draw_free(make: Callable[[], str], taken: Callable[[str], bool], what: str) -> str:
    """The first candidate that is not taken.

    Raises:
        ConfigError: a thousand candidates in a row are taken.
    """
    for _ in range(_MAX_DRAWS):
        value = make()
        if not taken(value):
            return value
    raise ConfigError(
        f"the haystack holds all of {_MAX_DRAWS} {what} that were tried as answers; use another haystack."
    )


def _uuid(rng: Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _draw_from(pool: Sequence[str], count: int, rng: Random, collides: Collides, what: str) -> list[str]:
    if count > len(pool):
        raise ConfigError(f"{count} needles need as many {what}, but there are {len(pool)}; ask for fewer keys.")
    order = rng.sample(pool, len(pool))
    spare = (word for word in order[count:] if not collides(word))
    drawn: list[str] = []
    for word in order[:count]:
        chosen = next(spare, None) if collides(word) else word
        if chosen is None:
            raise ConfigError(
                f"{count} needles need as many {what} that the haystack does not hold; ask for fewer keys or use "
                "another haystack."
            )
        drawn.append(chosen)
    return drawn
