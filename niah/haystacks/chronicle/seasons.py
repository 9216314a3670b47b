"""Weather and nature of the chronicle by season, and the rules that join its parts (grammar: ``_phrases``)."""

from __future__ import annotations

from collections.abc import Mapping

SEASONS = ("winter", "spring", "summer", "autumn")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

# weather that may follow in each season; the chain stays with probability 0.6
WEATHERS: Mapping[str, tuple[str, ...]] = {
    "winter": ("cold", "wet", "wild", "cold", "dry"),
    "spring": ("dry", "wet", "wild", "wet", "dry"),
    "summer": ("dry", "hot", "wet", "hot", "dry"),
    "autumn": ("wet", "dry", "wild", "wet", "cold"),
}

SEASON_RULES: Mapping[str, str] = {
    "weather_dry": """
        the {water} had sunk {count} inches, and {wild.pl} came to it at {hour}
        one could [see|hear|look] as far as {far}, and [smell|nearly smell|almost taste] its {smell}
        {a} {light} wind came over the {fieldland} and smelled of {smell}
        the [sun|heat|light] had [bleached|cracked|faded] the {opening.pl} of the {building}, and {insect.pl} \
            sat on the {perch}
        the {month} sky was {sky_dry} and {sky_dry} above the {land}
        [not a cloud|hardly a bird|nothing at all] stood over the {land}, and the {perch.pl} were warm by {hour}
        [there had been|they had had|the fields had seen] no rain since {past_month}, {comment}
        {a} {light} wind dried the {linens.pl} {where}
        [the dust|a fine dust|pollen|white dust] lay on the {tree.pl} and on the {building} [alike|too]
        the mornings were {sky_dry}, the evenings {sky_dry}, and the {land} could be crossed in {footwear.pl}""",
    "weather_wet": """
        {small} days of rain had [made {a} pond of|drowned|washed over|softened] the {fieldland}
        the {way} was {a} stream, the {water} {a} river, and the {river} {a} sea
        the {linens.pl} would not dry, and the {room} smelled of {smell}
        rain beat on the {fabric}, {adv_rain}, and {wild.pl} looked for shelter {where}
        it had rained since {hour}, {comment}
        {a} {sky_wet} mist hung over the {land} and hid the {building}
        the rain came through the {fabric} and filled {small} {pot.pl}
        the {land} was under water, and {bird.pl} swam {where}
        {sky_wet} weather had come in from beyond {far} and [would not go|meant to stay|settled on the {fieldland}]
        it rained {adv_rain} all through {month}, and the {perch.pl} of the {building} grew green
        water ran down the {street} and stood [in front of|behind|against|under] the {building}""",
    "weather_cold": """
        the {drink} had frozen in its {vessel}, and {stock.pl} steamed in the {farm}
        frost [drew|had drawn|painted] {flower.pl} on the {opening.pl} of the {building}
        nothing moved {where} but {a} {wild} and the smoke of the {works}
        it was so [cold|bitter|raw] that {folk_a} [wore|put on|went about in] {small} {knitwear.pl} and {a} {linens}
        the {land} was frozen as hard as {metal}
        {a} {sky_cold} wind blew under the {opening} and into the {linens.pl}
        ice stood in the {vessel.pl}, even in the {room}
        snow had fallen on the {building}, and the {street} was {sky_cold} and quiet
        the {river} [smoked|lay still|steamed|cracked] in the frost, and {bird.pl} sat in rows on the {perch}
        {sky_cold} nights followed {sky_cold} days, and [nobody|few|hardly anyone] went farther than the \
            {building}""",
    "weather_hot": """
        the {way} burned through one's {footwear.pl}, and {wild.pl} lay panting {where}
        even at {hour} the {building} [gave back the heat|was like an oven|shimmered]
        [milk turned|butter ran|tempers broke|the wells sank], and {insect.pl} got into the {dry}
        {folk_a} went about in {a} wet {headgear}, and {stock.pl} would not leave the {water}
        it was too {sky_hot} to {chore}, and {group} sat {where}
        the {sky_hot} air above the {land} trembled, and the {crop.pl} wilted
        the {drink} was warm, [the butter melted|the milk turned|the bread grew a beard], and the {stock.pl} stood \
            in the {water}
        thunder muttered beyond {far}, but the {sky_hot} weather held
        the {river} had [shrunk|sunk|dwindled] [until|till] [one|children|even the {fowl.pl}] could cross it by \
            the {building} in {footwear.pl}""",
    "weather_wild": """
        the {river} had [waves|foam|branches] on it, and the {tree.pl} [roared|groaned|bent|creaked]
        {a} {headgear} went by [in the air|overhead|at great speed], [followed|chased|watched] by {folk_a}
        smoke [came back|was blown|fell] down the [chimney|flue|chimneys] of the {building} and filled the {room}
        all night {a} {opening} banged {where}, and {dog.pl} howled
        {a} {sky_wild} wind from the {land} took {small} tiles off the {building}
        the wind had torn {a} {tree} out by the {building} and laid it across the {street}
        it blew so {adv_wind} that {group} walked bent past the {building}
        the {sky_wild} night rattled every {opening} in {P}
        {garment.pl} from [somebody|someone]'s line flew over the {building} and were found {where}
        {sky_wild} gusts chased the {bird.pl} inland as far as the {land}""",
    "nature_spring": """
        the {flower.pl} were out {where}
        {bird.pl} had built in the {fabric} of the {building}
        the {tree.pl} by the {land} were in leaf, and the {insect.pl} had found [them|the blossom]
        {a} {bird} {bird_sound.d} from the {tree} by the {building}
        lambs [ran|played|slept] {where}, and the {stock.pl} [lifted their heads|watched|lay down]
        {plant.pl} [pushed up|crept out|showed green] between the stones of the {building}
        the {wild.pl} had young in the {land}
        the {land} was {color} with {flower.pl}""",
    "nature_summer": """
        {insect.pl} hung over the {land}
        the {grain} stood as high as {a} {woodware}, with {flower.pl} in it
        {a} {fish} jumped in the {water} below the {building}
        young {bird.pl} fell out of the {tree.pl} and were carried home in {headgear.pl}
        the scent of {herb} and cut {grain} came over the {land}
        {wild.pl} crossed the {land} at {hour}, unafraid
        the {crop.pl} swelled {where}, and {bird.pl} watched them
        {small} {insect.pl} had got into the {dry}""",
    "nature_autumn": """
        leaves from the {tree.pl} lay in the {street}
        the {bird.pl} gathered on the {fabric} of the {building} and were gone by {hour}
        {wild.pl} were fat, and the {crop.pl} {where} were small
        there were mushrooms under the {tree.pl} and {bird.pl} in the {plant.pl}
        {a} {wild} carried {crop.pl} into the wall of the {building}
        the {tree.pl} by the {land} had turned {leaf_color} and {leaf_color}
        webs of {insect.pl} hung across the {land}""",
    "nature_winter": """
        {a} {wild} left its tracks {where}
        the {bird.pl} came to the {perch} for crumbs
        [nothing|little] was [green|alive|left] by the {land} but the {evergreen}
        {bird.pl} sat in the [bare|white|leafless|black] {tree.pl} above the {land}
        the {wild.pl} kept to their holes, and the {insect.pl} slept in the {fabric}
        {a} {bird} lay dead {where}
        {small} {bird.pl} followed the {vehicle} for [what fell from it|crumbs|the spilt {grain}]""",
}

JOINING_RULES: Mapping[str, str] = {
    "fan_n": "fan|parasol|lapdog|notebook|magnifying glass|cold|silver pencil",
    "keepsake": """
        {clothes_a}|{treasure_a}|{small} {linens.pl}|a bundle of {herb}|{small} {garment.pl}|
        {a} length of {color} {cloth}|{a} {fine_cloth} {linens}|{a} {vessel} of {drink}|
        {small} {treasure.pl}|{reading_matter_a}|a coil of {textile}|
        {a} {worn} {instrument}|{a} {drybox} of {dry}|{a} pair of {color} {footwear.pl}|{a} {metal} {kitchenware}""",
    "keepsakes": """
        {keepsake}, {keepsake} and {keepsake}|{keepsake} and {keepsake}|
        {keepsake}, {keepsake}, {keepsake} and {treasure_a}|
        {keepsake}, {keepsake}, and, wrapped in {cloth}, {treasure_a}""",
    "light": "light|warm|dry|soft|steady|southerly|fresh|gentle|westerly",
    "leaf_color": "yellow|russet|red|brown|golden|amber|crimson|copper|orange|scarlet|rusty",
    "water_depth": "knees|waist|elbows|chin|ankles|neck|hips|shoulders",
    "by_street": """
        in the lane|in the yard|in the square|on the green|on the quay|at the corner|on the terrace|in the
        alley|at the market cross|on the wharf|in the high street|under the arch""",
    "rumoured": "{treasure}|{mount}|{instrument}|{woodware}",
    "adj_rumoured": "{worn}|{fine}|{size}",
    "leak_place": "attic|wall|thatch|chimney|cellar|loft|gutter|flue",
    "spice": "{herb}|salt|mustard|pepper|nutmeg|vinegar|{herb}|honey|ginger|horseradish|cloves",
    "wet_weather": "rain|hail|wind|sleet|gale|drizzle",
    "vessel_big": "washtub|brewing vat|kneading trough|punt|barrel|pig trough|tin bath|coffin lid|hip bath",
    "dish_a": """
        {a} {pot} of {root.pl}|{a} {taste} {dish}|cold {dish}|{a} {dish} with {herb}|{small} {taste} {dish.pl}|{a}
        {fish} in {herb}|{root} soup|{a} {fruit} {pudding}""",
    "pudding": "pudding|tart|pie|flan|dumpling|crumble|turnover|trifle",
    "the_thing": """
        the {color} {mount}|the {worn} {instrument}|the {fine} {treasure}|the {worn_cloth} {clothes}|the
        {land_adj} {fieldland}|the {matter}""",
    "conveyance": "cart|wagon|gig|dog-cart|carriage|coach|hay cart|covered wagon|milk float|trap",
    "disputed": "{fieldland}|{tree}|{stock}|{mount}|{crossing}|{fieldtool}|{mark}|{machine}",
    "adj_disputed": "{size}|{worn}|{fine}",
    "evergreen": "yew|holly|ivy|juniper|box hedge|laurel",
    "adv_rain": "steadily|softly|without pause|day and night|in sheets|like a drum|by fits and starts",
    "adv_wind": "hard|wildly|steadily|fiercely|suddenly|shrilly|coldly",
    "late": "late|early|too soon|too late|after the {event}|before the {event}",
    "weather_ing": "raining|getting dark|snowing over the hills|growing cold|nearly {hour}|time for {meal}",
    "manner_wild": """
        without haste|looking {mood_adj}|in no great hurry|as [if|though] it were {month_any}|{adv}|with {a} \
            {mood_adj} air""",
    "manner_plain": """
        {adv}|without {a} word|{adv} and with {a} {tool}|in {color} {garment.pl}|with more {virtue} than skill""",
    "breakable": """
        roof|chimney|gutter|staircase|gable|door|wall|pump|wheel|oven|ladder|ceiling|shutter|gate|porch|boiler|lock|weathercock|floor|crane|hoist|chimney-pot|sluice|bell-frame""",
    "adj_beast": "{color}|{color}|{size}|{build_adj}|{mood_adj}",
    "adj_breakable": "{worn}|{worn}|{size}",
    "adj_relation": "{temper}|{age_adj}|{build_adj}",
    "adj_furniture": "{worn}|{wood}|{size}|{fine}",
    "adj_crossing": "{size}|{wood}|{fine}",
    "adj_treasure": "{fine}|{metal}|{worn}|{size}",
    "adj_conveyance": "{worn}|{color}|{size}|{fine}",
    "adj_building": "{worn}|{size}|{fine}",
    "talk_past": """
        {cause}|{gossip}|{cause}|{gossip}|{a} {temper} {folk} could {chore} better than {a} {temper} one|{virtue}
        was worth more than {a} {fine} {thing}|{group} had {mischief.en} {where}|the {land} would be {land_adj} by
        {month_any}|there would be {weather_thing} and more {weather_thing}|{price} was [too much|too little|a \
            strange price] for {thing_a}|{folk_a} would never {errand}|the {beast.pl} knew more than the \
            {office}|[nobody|no one|not a
        soul] could {chore} and
        {pastime} at once""",
}
