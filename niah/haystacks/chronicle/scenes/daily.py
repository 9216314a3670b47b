"""Scenes of ordinary days, and the sentences that fit into any scene, as templates (grammar: ``_phrases``).

A scene is a list of beats; of each beat one line is told. A beat that starts with "?" is told every other time.
"""

from __future__ import annotations

from collections.abc import Mapping

DAILY: Mapping[str, tuple[str, ...]] = {
    "workday": (
        """
        {A} {task.d} and {task.d} {where} before {meal}
        {when_start}, {A} {task.d}
        there was {degree} little to do in {A.his} {workplace} that {season}, so {A} {chore.d}
        {A} had meant to {task}, but {cause}
        from {hour} [until|till] {hour} {A} did nothing but {task}
        {A}, who {adv_often} hurried, took all of {count} days to {task}
        """,
        """
        {A} worked {adv}, {manner}, and {fuss.d} when the {handtool} slipped
        it was {opinion_adj} work, and {A} {fuss.d} over it
        {B} came in {when_soft}, {gesture.d}, and asked for {thing_a}
        {A.kin} {chore.d} meanwhile, {adv}
        the {handtool} was {worn_hard}, the {stuff} had run out, and the {folk} who [was to help|had promised to \
            come|held the ladder] had [gone|set off|been sent] to {errand}
        [nobody|no one|not a soul] in {P} could {task} as {adv} as {A}, {comment}
        """,
        """
        ?
        "{C question}?" {B.asked}
        "{C talk}," {A.said}
        "if you want to {task}," {A.said}, "you had better {chore} first"
        "{C short}," {A.said}, and {gesture.d}
        "I can {task} or I can talk," {A.said}, "and {talk}"
        """,
        """
        {when_soft} the {handtool} was {state_of} and {A} {gesture.d}
        for all that {A} asked only {price}
        by {hour} {small} {container.pl} stood ready {where}
        {A} slept badly after it, for {cause}
        {B} paid {price}, {fuss.d}, and {motion.d} {whither}
        the {office} [looked|glanced|stared|peered] at the result, {fuss.d}, and ordered {small} more
        [in the end|after all that|at long last] {A} {adv_often} earned less by it than by {chore.ing}
        """,
    ),
    "market": (
        """
        {A} set out for the market at {Q} with {goods_list}
        {when_start}, {A} took {qty_goods} to market at {Q}
        the market at {Q} was {degree} thin, for {cause}
        {A} had {small} {stock.pl} to sell and [no great|small|little] hope of {price}
        {when_start}, {A} and {A.kin} loaded {a} {conveyance} with {goods_list}
        """,
        """
        the stalls stood from the {building} to the {street}, with {goods_list} laid out {where}
        {stuff} had risen to {price}, and {group} {crowd_act.d} about it
        {a} {folk} sold {dish.pl} {where}, and the smell of {smell} followed [everybody|everyone]
        beside the {crossing} {a} {age_adj} {folk} offered {goods_list}, all of it {worn}
        there were {stock.pl} in the {street}, {crop.pl} on the steps of the {building}, and {folk_a} \
            {pastime.ing} {where}
        """,
        """
        "{price}," {B.said}, and {gesture.d}
        "for {price} I could buy {wood_a}," {B.said}
        "{C question}?" {B.asked}, and {A} {fuss.d}
        "there is no better {stuff} in {P}," {A.said}. "Smell it"
        "my {kin_any} sells {crop.pl} at {price}," {B.said} {adv_say}
        {B}, who was {said_of_people}, offered {price} and {thing_a}
        """,
        """
        ?
        {A} {adv_often} haggled, but {when_soft} {A.he} {fuss.d} and came down to {price}
        they agreed [at last|finally] on {price} and {qty_goods}
        {B} walked away, {fuss.d}, and walked back again {manner}
        neither would give way [until|till] {folk_a} {fuss.d} and called them both {temper}
        it took the {office} to settle it: {price}, with {thing_a} thrown in
        """,
        """
        {A} [came|returned] home with {price}, {thing_a} and {a} {ailment_n}
        with the money {A} bought {goods_list}
        {when_soft} {A} counted the money {where} and found it short by {price}
        the price of {grain} fell {when_soft}, {comment}
        on the road home {A} {motion.d} {whither}, {mood_adj} and {mood_adj} by turns
        nothing was left in the [cart|gig|wagon|trap] but {thing_a} and the smell of {smell}
        """,
    ),
    "meal": (
        """
        {A} cooked {a} {taste} {dish} for {B.him} and {folk_a}
        {when_start} there was {dish_a} in the {room}, with {crop.pl} and {drink}
        {A} had {cook.en} the {crop.pl} with {herb}, {comment}
        they ate in the {room}, because {cause}
        {A} sat down to {dish_a} and {a} {vessel} of {drink}
        """,
        """
        the {dish} was {taste}, the {crop.pl} were {taste}, and the {drink} was {taste}
        {B} took {small} helpings, {fuss.d}, and asked for {spice}
        {A} {chore.d} between the {root} soup and the {dish}
        {group} came in {adv}, smelling of {smell}, and sat down on the {furniture.pl}
        over the {dish} {B} told how {folk_a} had {haul.en}
        [nobody|no one|not a soul] spoke [until|till] the {dish.pl} were gone
        """,
        """
        "{C talk}," {B.said} over the {dish}
        "more {crop.pl}?" {A.asked}
        "{C question}?" {A.asked}, passing the {pot}
        "it wants {herb}," {B.said} {adv_say}
        "my {kin_any} put {spice} in it," {B.said}, "and {herb} on top"
        "who put {spice} in the {dish}?" {B.asked}
        """,
        """
        [afterwards|later] {A} {chore.d} while {B} {pastime.d}
        {when_soft} only {a} {animal} and {a} {worn} {vessel} were left in the {room}
        what was over went to the {stock.pl}, {comment}
        {B} slept in {a} {seat} with {B.his} {headgear} over {B.his} nose
        {A} {adv_often} cooked it again, for {cause}
        """,
    ),
    "lesson": (
        """
        {A} was to teach the [children|little ones|young people] of {P} about the {bird}, but {cause}
        {when_start}, {A} found {count} children {where}, {mischief.ing}
        in the schoolroom at {P} there were {count} children, one {worn_hard} {seat}, and no {charcoal_n}
        {A.kin} refused to learn anything but {game}
        the school at {P} was to be inspected, so {A} had the children {chore}
        {when_start}, {A} took {count} children to see the {land}
        """,
        """
        they spelled "{vessel}", "{office}" and "{fish}", {adv}
        {A} drew {a} {animal} in {charcoal_n} on the {opening} and asked what it was
        the youngest, who was {said_of_people}, {fuss.d} and was sent to {chore}
        each child had {a} {drybox}, {a} piece of {fuel} for the stove and {a} {look_n} to match
        the sum was about {small} {stock.pl}, {count} {drybox.pl} of {grain} and {a} {temper} {folk}
        one wrote {count} lines about {a} {animal}, another drew {a} {office} asleep
        {A} showed them {a} {treasure}, and it came back without its {metal} part
        they learned the rivers: the {river}, and those beyond {far}
        """,
        """
        "{a} {animal}," said one; "{a} {animal} in {a} {garment}," said another
        "please," said {a} {temper} girl, "{question}?"
        "{C question}?" {A.asked}
        "{C proverb}," {A.said}, and made them write it {small} times
        "my {kin_any} says that {talk}," said {a} boy from {far}
        """,
        """
        {when_soft} {A} let them {pastime}
        {B} came to the {opening}, {gesture.d}, and took {count} of them away to {chore}
        by {hour} the {room} smelled of {smell} and [nobody|no one|not a soul] had learned much
        {A} thought them {temper} on the whole, and {temper} in particular
        """,
    ),
    "mischief": (
        """
        {when_start}, [somebody|someone] {mischief.d}
        {A.kin} had {mischief.en}, {comment}
        two boys from {Q} {mischief.d} and {motion.d} {whither}
        {A} looked out of the {opening} and saw {small} children {mischief.ing}
        """,
        """
        {A} {motion.d} after them {whither}, {manner}
        the {office}{v_he} was called, came {adv}, and {gesture.d}
        {B} laughed so much that {B.he} had to {gesture}
        there was {wet} on the {opening}, {dry} on the {woodware} and {a} {wild} in the {drybox}
        {group} blamed {folk_a}, who was {said_of_people}
        """,
        """
        "{C question}?" {A.asked} {adv_say}
        "it was {a} {animal}," said the [smaller|taller|bolder|muddier] one, "and it went {whither}"
        "when I was a child," {B.said}, "we {mischief.d} every {month_any}"
        "you will {chore}," {A.said}, "and then you will {chore}, and after that {talk}"
        """,
        """
        for {count} days the [culprits|offenders|little ones|guilty] had to {chore} before {meal}
        nothing more was said, but {when_soft} {A} found {qty_goods} {where}
        {A} kept one {headgear} as proof, and {adv_often} told of it at {inn}
        the {stock.pl} were {mood_adj} for {count} days
        [no|little|hardly any] harm was done, [if one did not count|leaving aside|apart from] the {woodware} and \
            the {stuff}
        """,
    ),
    "evening": (
        """
        {A} could not sleep that night, for {cause}
        {A} sat up in the {room} with {a} {vessel} of {drink} and {reading_matter_a}
        {when_start}, {A} {motion.d} {whither} alone
        the {room} was quiet except for the {sound} of the {opening}
        """,
        """
        {A} thought of {B.him}, of {the_thing} they had [once|often] quarrelled [about|over], and of {price} \
            still owing
        it seemed to {A.him} that {talk_past}
        somewhere {where} {a} {animal} made {a} {sound_adj} {sound}
        {A} remembered how {A.kin} used to {pastime} {where}
        there had been {a} {event} at {Q} once, when {folk_a} {haul.d} and {group} {crowd_act.d} [until|till] {hour}
        the moon stood over the {building}, {color} as {a} {dish}
        """,
        """
        ?
        was it {opinion_adj} to {haul} at such an age?
        what would {B.name} have done with {thing_a} and {a} {temper} {kin_any}?
        had anybody ever {chore.en} with so little {virtue}?
        how long could {a} {temper} {folk} live on {dish.pl} and {virtue}?
        """,
        """
        towards {hour} {A} {gesture.d} and went to bed
        {A} decided to {errand} [in the morning|the next day|before the {event}], or at least to {chore}
        {A} wrote it down in {reading_matter_a} and felt {mood_adj}
        [the candle went out|the fire sank|the clock stopped], and {A} listened to the {wet_weather} on the {opening}
        [in the morning|at daybreak|by {meal}] {A.he} had forgotten all but the {sound}
        """,
    ),
    "inn": (
        """
        {inn} was full {when_soft}, because {cause}
        {A} was {pastime.ing} {where} when {B} came in smelling of {smell}
        at {inn} {A} and {B} played {game} for {price}
        {when_start}, {group} met at {inn} to talk about the {matter}
        """,
        """
        {folk_a} played the {instrument}, {adv}, and {group} danced {where}
        the {drink} was {taste} and cost {price}, {comment}
        {a} {folk} from {far} told how {folk_a} had {haul.en}
        [somebody|someone] had [brought|carried in|produced] {a} {instrument}, [somebody|someone] else {a} \
            {stock}, and for an hour the {room} was all {sound} and {sound}
        {B} bet {price} that no {folk} in the {room} could {chore} in the dark
        """,
        """
        "{C question}?" {A.asked}
        "{C talk}," {B.said}
        "they tell me that {gossip}," {B.said} {adv_say}
        "another {vessel} of {drink}," {A.said}, "and {a} {dish} with it"
        "{C short}," {B.said}
        "sing the one about the {animal} and the {office}," [somebody|someone] called
        """,
        """
        {when_soft} {A} paid with {a} {treasure} and {motion.d} {whither}
        {B} lost {price}, {a} {garment} and the last of {B.his} {virtue}
        [nobody|no one|hardly anyone] remembered [afterwards|next day|later] who had [thrown|dropped|emptied] \
            the {vessel}
        at {hour} the landlord{v_he} {gesture.d} and put out the lamps
        they walked home [arm in arm|together|one behind the other], {fuss.ing}, past the {building} and the {land}
        """,
    ),
    "portrait": (
        """
        {A} was {said_of_people}, and had been {a} {A.trade} for {count} years
        [everybody|everyone] in {P} knew {A.him} by {A.his} {color} {garment} and {A.his} {look_n}
        {A} had been born {where}, in the week of the {event}
        of {A.full} it was said that {A.he} could {pastime} and {chore} at the same time
        {A} had {small} {kin_any.pl}, {thing_a}, and {a} {build_adj} {dog}
        {A} lived {where} with {A.kin} and {small} {fowl.pl}
        people came from {Q} to see {A.him} {task}, {comment}
        in {A.his} youth {A} had been {a} {folk} at {far}
        """,
        """
        as a child {A.he} had {haul.en}, {comment}
        {A.he} was {build_adj} and {degree} {temper}, with {a} {body} that ached before {weather_thing}
        {A.he} {adv_often} spoke of {Q}, where {A.he} had once {haul.en}
        {A.kin} thought {A.him} {temper}, and {folk_a} thought {A.him} {temper}
        in {A.his} {room} stood {treasure_a}, {a} {fine} {instrument} and {a} {seat} that [nobody|no one|not a \
            soul] might sit on
        {A.his} {virtue} was {fact_adj}, {A.his} {fault} was {fact_adj}, and between the two {A.he} lived {adv} enough
        {A.he} could {chore}, {chore} and, if need be, {task} before {meal}
        {A.he} kept {animal_a} in the {room} and spoke to it about {matter}
        {A.he} had quarrelled with {folk_a} over {thing_a} and never {mend.en} the {opening} since
        for {count} years {A.he} had meant to {errand}, and {cause}
        """,
        """
        ?
        {A.he} disliked {crop.pl}, {office.pl} and the {sound} of {a} {instrument}
        on {event} days {A.he} wore {a} {cloth} {garment} and {a} {fine} {treasure}
        every {season} {A.he} would {haul}, and every {season} {A.he} was {mood_adj} about it
        "{C proverb}," {A.he} used to say, {gesture.ing}
        when {mood_adj}, {A.he} would {motion} {whither} and {pastime}
        what {A.he} feared was {illness}, {office.pl} and {a} {sky} {month_any}
        in {month_any} {A.he} was {adv_often} to be found {where}, {pastime.ing}
        {A.his} {dish.pl} were {taste}, {A.his} {vessel.pl} were full, and {A.his} {opening} stood open
        """,
        """
        {B} liked {A.him} none the less, for {cause}
        that {season} {A.he} [began|started] to {pastime}, {comment}
        [nobody|no one|not a soul] could say whether it was {virtue} or {fault}
        if {A.he} had [a wish left|any ambition|one hope], it was to {haul} before {A.he} died
        on {A.his} birthday {group} brought {A.him} {qty_goods}
        {folk_a} once asked {A.him} why, and {A.he} {gesture.d}
        that was {A}, and whoever wanted to {errand} had to reckon with it
        """,
    ),
    "place": (
        """
        {P} lay between the {river} and {a} {land_adj} {land}, with its {building} at one end and its {building} \
            at the other
        there were {count} houses in {P}, {small} of them empty, and {a} {worn} {building} {where}
        the road from {P} to {Q} went past {a} {land_adj} {land} and through the {tree.pl}
        [nobody|no one|not a soul] knew who had [built|paid for|named|thought of] the {building} at {P}, or why \
            its {opening} was {color}
        """,
        """
        in {month} the {land} was {land_adj} and smelled of {smell}
        {flower.pl} grew {where}, and {a} {bird} nested in the {fabric} of the {building}
        on one side {group} kept {stock.pl}; on the other {folk_a} grew {crop.pl} and {crop.pl}
        {a} stone by the {crossing} said that {a} {office} had drowned there while {chore.ing}
        over the door of {inn} [somebody|someone] had carved {a} {animal} with {a} {fieldtool}
        {a} {land_adj} path led from the {street} to the {land}, past {a} {worn_hard} {opening} where {bird.pl} \
            {bird_act.d}
        the {public} had {a} {fabric} of {wood} and {a} {opening} that {adv_often} {sound_verb.d}
        each {event} brought {group} to the {street}, and each {season} the {river} came to look at the {homes.pl}
        of {far} people in {P} said that {talk_past}
        """,
        """
        {A} lived there, {where}, with {thing_a} and {a} {stock}
        strangers [thought|called|found] it {opinion_adj} to live so near the {land}, {comment}
        {A} {adv_often} said that one could hear the {sound} of the {building} as far as {Q}
        the {matter} had been in dispute there since {folk_a} {haul.d}
        {A.kin} had seen the world as far as {Q} and did not care for it
        in the evening one heard {a} {machine}, {a} {dog} and, when the wind was right, {a} {instrument} from {far}
        """,
    ),
    "nature": (
        """
        {nature}
        {weather}
        the {bird.pl} had begun to {bird_act} {where}
        {when_start}, {nature}
        """,
        """
        {nature}, and {nature}
        {a} {wild} came as far as the {building}, {manner_wild}, and went off {whither}
        the {flower.pl} had begun to {grow} {where}, a week {late}
        in the {land} the {tree.pl} stood {sky}, and under them the {plant.pl} {grow.d} among the {plant.pl}
        {small} {bird.pl} sat on the {fabric} of the {building} and {bird_sound.d}
        {A} counted {count} {bird.pl} {where}, {comment}
        """,
        """
        ?
        the {river} ran {flow_adj} past {P}, carrying {thing_a}
        everything smelled of {smell} and {smell}
        {folk_a} swore that {small} {animal_pl} meant {weather_thing}
        by {hour} the light on the {land} had turned the colour of {drink}
        """,
        """
        {A} stood {where} and {gesture.d}
        {when_soft} the first {weather_thing} of the {season} came over the {land}
        "{weather_thing} by {hour}," {A.said}
        {group} took it as a sign and {work.d}
        {A} {task.d} [all the same|nevertheless|even so]
        """,
    ),
}

FILLERS: Mapping[str, str] = {
    "fill_weather": """
        {weather}
        {weather}, and {nature}
        {when_soft} {weather}
        {weather}; {group} {work.d} nevertheless""",
    "fill_nature": """
        {nature}
        somewhere {where} {small} {bird.pl} {bird_sound.d}
        {a} {size_small} {insect} walked across the {pot}
        {a} {coat} {dog} {roam.d} past, {mood_adj}, with {a} {footwear} in its mouth
        from the {land} came the {sound_adj} {sound} of {a} {machine}
        there was {a} {sky_n} over the {land}, {comment}
        the {opening.pl} of the {building} {shine.d}, and {bird.pl} {bird_act.d} {where}""",
    "fill_short": """
        {A} {fuss.d}
        {A} {fuss.d} and {fuss.d}
        {B} {gesture.d}
        {A} {gesture.d}
        {A} was {mood_adj}
        {B} looked {degree} {mood_adj}
        [nobody|no one|not a soul] laughed but {folk_a}
        {doubtless} {B} was {temper}
        the {dish} was getting cold
        it was {degree} {opinion_adj}
        the {dog} {dog_act.d}
        {A} did not {fuss}
        {B} {motion.d} {whither}
        {doubtless} it was the {weather_thing}
        the {opening} {sound_verb.d}
        {group} {crowd_act.d}
        {A} {kind_act.d} {B.him}
        the {metal} {ornament} {shine.d} in the {room}
        {B} {kind_act.d} {A.him}, {comment}
        {animal_a} {roam.d} {whither}
        {A} said nothing about the {trouble}""",
    "fill_react": """
        {B} {fuss.d}
        {A} {gesture.d}
        {A} was {mood_adj}
        {B} was {degree} {mood_adj}
        {B} {gesture.d} and {fuss.d}
        {A} {fuss.d}, {manner_plain}
        the {office}{v_he} {gesture.d}
        {group} {crowd_act.d}""",
    "fill_think": """
        {A} {ponder.d} that {talk_past}
        {doubtless} {talk_past}, {comment}
        {A} wondered whether {talk_past}
        {A} felt {mood_adj}, as [one does|people do|anyone would] when {cause}
        {B} {adv_often} thought of the {event} at {far}, where {folk_a} had {haul.en} and {group} had \
            {crowd_act.en} about it for {count} years
        what {A} [wanted|needed|dreamed of] was {thing_a}, and what {A.he} had was {thing_a}
        there was {a} {notion} [behind it|in that|at the back of it], and {a} {trouble} behind the {notion}
        {A} {adv_often} {chore.d} when {mood_adj}, and [now|that day|again] {A.he} {chore.d}""",
    "fill_talk": """
        "{C talk}," {A.said}
        "{C talk}," {B.said}
        "{C question}?" {A.asked}
        "{C question}?" {B.asked} {adv_say}
        "{C short}," {A.said}
        "{C short}," {B.said} {adv_say}
        "{C talk}," {A.said}, "and {talk}"
        "I {ponder} that {talk_past}," {B.said}
        "you are {mood_adj}," {A.said}, "and no wonder, if you have {chore.en} all day"
        "nonsense," {B.said}. "{C talk}"
        "{C talk}," {B.said} in {a} {voice_adj} voice
        {A} {beg.d} {B.him} to {chore}, but {B.he} only {fuss.d}
        {A} {beg.d} {B.him} not to {haul}, {comment}
        "{C proverb}," {A.said} {adv_say}, and {gesture.d}""",
    "fill_crowd": """
        {group} stood {where} and {crowd_act.d}
        {folk_a} {motion.d} past with {goods_list}
        the {office}{v_he}, who was {said_of_people}, {gesture.d} and {fuss.d}
        {a} {age_adj} {folk} from {far} {pastime.d} {where}
        behind them {folk_a} {chore.d}, {manner_plain}
        at the {building} {group} were {chore.ing}""",
    "fill_long": """
        {when_start}, while {group} {chore.d} and {folk_a} {pastime.d}, {A} {motion.d} {whither} with \
            {goods_list}, for {cause}
        although {cause}, and although {folk_a} had [warned|told|assured|reminded] {A.him} that {talk_past}, {A} \
            went on {chore.ing} {where} [until|till] {hour}, when {cause}
        in the {storage} in {A.his} {room} there lay {keepsakes}, {keepsake}, and, wrapped in {cloth}, \
            {treasure_a} that had [belonged to|been meant for|been lent by] {A.kin}
        {A} {chore.d}, {chore.d}, {gesture.d}, and then, because {cause}, {motion.d} {whither} to {errand}
        it was [one of those|another of the|the first of many] {sky} days in {month} when {group} would \
            [sooner|rather] {pastime} than {chore}, when {nature}, and when even {folk_a} could be \
            [found|met|seen] {where}, {pastime.ing}
        whoever had {chore.en}, whether it was {folk_a} or the {folk} from {far}, had left {goods_list} {where}, \
            so that {A}, who was {said_of_people}, had to {chore} before [anybody|anyone else|{folk_a}] could \
            {errand}""",
}
