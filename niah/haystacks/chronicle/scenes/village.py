"""Scenes of the village as a whole: talk, illness, debts, council, weddings, floods, as templates (``_phrases``)."""

from __future__ import annotations

from collections.abc import Mapping

VILLAGE: Mapping[str, tuple[str, ...]] = {
    "gossip": (
        """
        {B} told {A.him} {where} that {gossip}
        it was said in {P} {when_start} that {gossip}
        {when_start}, {A} heard from {folk_a} that {gossip}
        {group} had it from {folk_a} that {B} had {haul.en}
        """,
        """
        {A} told it to {folk_a}, who told it at {inn}, where it grew {a} {animal} and {count} {coin}
        some said that {gossip}; others that {gossip}
        by {hour} the story had reached {Q}, and there it was {a} {kin_any} who had {haul.en}
        [nobody|no one|not a soul] had seen it, but {group} knew exactly what {O.a} had to do with it
        {B} added {O.a} to the story, {a} {color} {garment}, and the {event} at {far}
        """,
        """
        "{C question}?" {A.asked}
        "{C talk}," {B.said}, "so it must be true"
        "I saw {O.the} myself," {B.said}, "{where}, at {hour}"
        "who {haul.d}?" {A.asked} {adv_say}
        "say what you like," {A.said}, "but {talk}"
        """,
        """
        {A} [did not believe it|believed about half|shook a doubtful head|laughed aloud], and \
            [repeated|told|whispered] it {when_soft} to {folk_a}
        {A} [thought|called|found] it {fact_adj}, {comment}
        the person [most concerned|in question|of whom they spoke] was {chore.ing} [all the while|meanwhile] and \
            heard [nothing|nothing of it|not a word]
        for {count} days {group} [talked|spoke] of little else {where}
        """,
    ),
    "truth": (
        """
        the truth about {O.the} came out {when_start}, through {folk_a}
        {when_start}, {A} [learned|found out|was told] that there was [nothing|very little|not a grain of truth] \
            in the [story|tale|rumour] of {O.the}
        it turned out that {O.the} of which [everybody|everyone] had [talked|spoken] was {a} {worn} {treasure} of \
            the {office}'s
        {A} asked {folk_a} about {O.the} {when_start}, and heard another story
        as to {O.the}, the {office} could have told them {when_start}, had anyone asked
        {when_start}, {B} confessed {where} that {O.the} had been {a} joke
        """,
        """
        [nobody|no one|not a soul] had {haul.en} at all; {a} {kin_any} of {B.full} had only {chore.en} {where}
        {B} was {mood_adj}, blamed {folk_a}, and {gesture.d}
        "I never said that," {B.said}. "I said that {talk}"
        {group} looked {mood_adj} and [began|started] to talk about {matter}
        the tale had begun at {far}, with {a} {fowl}, {folk_a} and too much {drink}
        {folk_a} had said {count}, {folk_a} had heard {count} hundred, and so it had grown
        {B} had indeed {haul.en}, but in another village and {count} years before
        "{C talk}," {B.said}, "and I will [say so to|tell|swear it before] the {office}"
        """,
        """
        {A} bought {B.him} {a} {vessel} of {drink} and let the matter rest
        some people still believe it, {comment}
        it did not stop {folk_a} from saying {when_soft} that {gossip}
        {doubtless} {virtue} is rarer in {month_any} than {a} {color} {bird}
        {A} wrote to {Q} about it and had no answer before {month_any}
        {folk_a} was {mood_adj} and begged everyone's pardon, {manner_plain}
        that did not keep {group} from {pastime.ing} {where} and hoping for more
        {A} said that {talk_past}, and {B} said that {talk_past}
        """,
    ),
    "illness": (
        """
        {A} fell ill with {illness} {when_start}
        {when_start}, {A} stayed in bed with {a} {ailment_n} and {a} {ailment_n}
        {A}, who was {adv_often} ill, had taken cold {where}
        there was {illness} in {P} that {season}, and {A} was the {ord} to have it
        """,
        """
        {A.he} was told to {remedy_vp} and to {remedy_vp}
        {folk_a} advised {A.him} to {remedy_vp}, {comment}
        {B} [brought|carried in|produced] {qty_goods} and sat {where} [until|till] {hour}
        {A.kin} {remedy_vp.d} as well, out of {virtue}
        {A} {remedy_vp.d}, {remedy_vp.d}, and was no better
        """,
        """
        "{C short}," {B.said}, feeling {A.his} forehead
        "it is nothing but {illness}," {B.said}. "{C talk}"
        "you will be {pastime.ing} before {month_any}," {B.said}
        "if I die," {A.said}, "give the {treasure} to {folk_a} and the {stock.pl} to my {kin_any}"
        """,
        """
        [in the night|towards morning|that evening] the fever rose, and {A} [talked|spoke] of {animal_pl} and {coin}
        {A.his} {workplace} stood idle, and {cause}
        {group} went past the {opening} on tiptoe, carrying {vessel.pl} of {drink}
        {when_soft} {A} took a little {dish} with {herb} and slept
        """,
    ),
    "recovery": (
        """
        {A} was up again by {month}, thinner, {temper} and very fond of {dish.pl}
        {when_start}, {A} left {A.his} bed and {chore.d}
        the {illness} had left {A.him} with {a} {sound_adj} cough and {a} dislike of {herb}
        {A} got well [in the end|at last|within {count} days], whether by {herb} or by {virtue}
        """,
        """
        {B} was given {thing_a} for all that nursing
        "{C talk}," {A.said} from under the {linens.pl}
        {A.he} walked {whither} on {B.his} arm, stopping {where} to {gesture}
        {folk_a} claimed that it was the {herb} that had done it
        {A.he} could {task} again within {count} days, [though|although] {cause}
        """,
    ),
    "debt": (
        """
        {A} had lent {B.him} {O.a} and {price} before the {event}
        {B} owed {A.him} {price} for {goods_list}
        {when_start}, {A} went to {B.him} about {O.a}, which had been lent in {past_month}
        """,
        """
        {B} {gesture.d} and spoke of {matter}
        "you shall have {O.the} by the {event}," {B.said}
        "{C talk}," {B.said}, "and besides, {cause}"
        "{price} is {price}," {A.said} {adv_say}
        {B} was {chore.ing} and could not be spoken to
        """,
        """
        {A} went home, {mood_adj}, and wrote it in {reading_matter_a}
        {A} told {A.kin}, who {fuss.d} and {gesture.d}
        [in place of it|instead] {B} offered {qty_goods}, {comment}
        {when_soft} {A} thought of selling {a} {stock}, for {cause}
        """,
    ),
    "repaid": (
        """
        {B} paid {A.him} back for {O.the} {when_start}, in {coin} and {crop.pl}
        {when_start}, {A} found {O.the} {where}, {fine} and wrapped in {cloth}
        {B} came with {O.the} under one arm and {a} {stock} under the other
        """,
        """
        "I said by the {event}," {B.said}
        {A} counted it, {fuss.d}, and gave back {count} {coin}
        {O.the} was {state_of}, but {A} said nothing about it
        "{C proverb}," {A.said}, and they drank {drink} on it
        it was {price} short, {comment}
        """,
    ),
    "council": (
        """
        {group} met in the {building} {when_start} to decide about {O.a}
        there was to be {O.a} at the end of the {street}, or so {A} proposed {when_start}
        {A} had asked the {office} for {O.a} {where} ever since {cause}
        """,
        """
        {A} spoke for {O.the}, {adv}, and was [followed by|interrupted by|answered by] {folk_a}, who spoke about \
            {matter}
        {B} was against it, because {cause}
        it would [cost|come to|need] {price}, take [until|till] {month_any}, and spoil the {land} for the {stock.pl}
        the {office} read from {reading_matter_a} [until|till] {small} people [were asleep|had gone home|were \
            {pastime.ing}]
        {count} hands [went up for it|were raised|said yes], {count} against, and {a} {folk} voted twice
        {A} had [drawn|described|planned] it on the back of {reading_matter_a}, with {a} {bird} on top
        there was {a} {folk} for it and {a} {folk} against it, and both had {drink} with them
        """,
        """
        "{C question}?" {B.asked}
        "{C talk}," {A.said}, "and every winter [somebody|someone] falls in"
        "[who is to pay|and the cost|what for]?" [somebody|one of them|a voice] called. "The {folk.pl}?"
        "let {far} [build it|pay for it|have it]," {B.said}
        "we have no {hardware}, no {wood}, and no {virtue}," {B.said} {adv_say}
        """,
        """
        [in the end|after {count} hours|at last] it was [put off|left|postponed] [until|till] the {event}, {comment}
        they agreed on {O.the}, but of {wood} and not of {metal}
        {A} went home {mood_adj} and {chore.d}
        {when_soft} the {office} wrote it all down in {reading_matter_a} and [lost|mislaid|was seen to burn] the \
            {reading_matter}
        """,
    ),
    "built": (
        """
        the work on {O.the} began {when_start}, with {small} carts of {hardware}
        {A} laid the first stone of {O.the} {when_start}, in {a} {color} {garment}
        {O.the} for which {A} had argued was finished late in {month}
        {small} {folk.pl} from {far} came {when_start} to work on {O.the}
        after all the talk {O.the} stood there {when_start}, {state_of}
        {A} paid the last {price} towards {O.the} {when_start}
        """,
        """
        {B} drove the first {stock.pl} over it, [though|although] {B.he} had been against it
        {count} {folk.pl} worked at it, {chore.ing} at night and {pastime.ing} on holidays
        {folk_a} fell from it into the {land} and was pulled out with {a} {fieldtool}
        under the stones they had laid {a} {treasure}, {a} {vessel} of {drink} and the name of the {office}
        the {wood} came from {far}, the {hardware} from {Q}, and the {folk.pl} from everywhere
        it rained, the {filler_stuff} would not set, and {A} {fuss.d}
        {B} found {a} mistake of {count} inches and was {mood_adj} about it
        {folk_a} carved {a} {animal} on it when the {office} was not looking
        """,
        """
        "{C talk}," {B.said}, stamping on it
        {A} walked over it [every evening|on {event} days|at {hour}] with {A.kin}, {comment}
        it {sound_verb.d} when {a} {conveyance} went across, but it held
        the {folk.pl} from {far} [asked at once for one like it|came to measure it|wanted the plans]
        the {mount.pl} would not cross it before {month_any}
        "it is {degree} {size}," {B.said}, "but I have seen worse at {far}"
        {group} held {a} {event} on it, with {dish.pl} and {a} {instrument}
        """,
    ),
    "theft": (
        """
        {when_start}, {O.a} was missing from {A.his} {room}
        [somebody|someone] had taken {O.a} from {A.him} while {A.he} was {chore.ing}
        {A} [came|returned] home to find the {opening} open and {O.a} gone
        {A} had left {O.a} {where}, and at {hour} it was not there
        "{O.the} is gone!" {A.said} {when_soft}, and {gesture.d}
        {when_start}, {A} missed {O.a}, {small} {vessel.pl} of {drink} and {a} {dish}
        """,
        """
        {A} suspected {folk_a}, then {folk_a}, and towards evening even {B.him}
        the {office}{v_he} [looked|glanced|stared|peered] at the {opening}, {gesture.d}, and asked who had \
            {chore.en} last
        they found {dry} on the [floor|sill|stairs] and the [print|mark] of {a} {footwear} by the {opening}
        {B} had seen {folk_a} {motion.ing} {whither} with something under {a} {garment}
        {A} asked {where}, asked {where}, and looked into every {storage} in {P}
        {B} had {adv_often} warned {A.him} about {opening.pl} and {folk.pl}
        the {dog}, which {adv_often} {dog_act.d}, had kept quiet, and that was thought {opinion_adj}
        {A.kin} remembered {a} {build_adj} {folk} with {a} {drybox}
        """,
        """
        "{C question}?" asked the {office}
        "it was my {kin_any}'s," {A.said}, "and worth {price}"
        "{C short}," {B.said}
        "whoever has it," {A.said}, "may {chore} with it [until|till] {month_any} for all I care"
        "was it {fine}?" asked the {office}, and wrote that down
        "I blame {folk_a}," {B.said} {adv_say}
        "{C talk}," {A.said}, "but I never thought of thieves"
        """,
        """
        the {opening} was fitted with {a} {metal} lock, {comment}
        {when_soft} {group} locked up everything down to the {fowl.pl}
        {A} could not {task} that day for {mood}
        {A} promised {price} to whoever brought {O.the} back
        for {count} nights {A.kin} sat behind the {opening} with {a} {fieldtool}
        {A} bought {a} {dog}, which {dog_act.d} at everyone but {folk.pl}
        """,
    ),
    "culprit": (
        """
        {O.the} that {A} had missed turned up {when_start} in the nest of {a} {bird}
        {when_start}, {A} found {O.the} {where}, under {goods_list}
        it was {a} {kin_any} of {B.full} who had taken {O.the}, to {errand}
        {O.the} was [brought|sent|handed] back by {a} {temper} {folk}, who had bought it at {far} for {price}
        {when_start}, {a} {dog} dug up {O.the} {where}
        {A} saw {O.the} {when_start} in the hands of {folk_a} from {Q}
        the {office} found {O.the} in {a} {drybox} of {dry}, {comment}
        """,
        """
        {A} had to beg pardon of {folk_a}, and of {B.him}, {comment}
        "{C talk}," {B.said}, but {B.he} took the {dish} that {A} had baked
        the {office} was {mood_adj}, having arrested {folk_a} for it
        {A} put {O.the} back, {manner}, and said that {talk_past}
        {A} asked {price} for the fright and was given {qty_goods}
        {B} {fuss.d}, since it was what {B.he} had [said all along|guessed|told {folk_a}]
        "it only wanted looking for," {A.said}, and {chore.d}
        """,
    ),
    "courtship": (
        """
        {A} had begun to {pastime} near {B.his} door every evening
        {when_start}, {A} gave {B.him} {thing_a}, {comment}
        it was noticed {when_start} that {A} no longer {pastime.d} without {B.him}
        {A} had carried {B.his} {drybox} home from the {event}, {manner}
        """,
        """
        they walked {whither}, talking of {matter}, {animal_pl} and {dish.pl}
        {B.kin} thought {A.him} {temper} and was [not slow|quick|not afraid|the first] to say so
        {A} wore {a} {fine} {garment}, and {fuss.d} whenever {B} looked up
        {B} was said to have refused {a} {office} with {small} {stock.pl} and {a} {building}
        """,
        """
        "{C question}?" {B.asked}
        "I have {small} {stock.pl}, {thing_a} and no debts," {A.said}
        "you {adv_often} say so," {B.said}, "when {talk}"
        "ask me again at the {event}," {B.said} {adv_say}
        """,
        """
        {when_soft} {A} {motion.d} home {whither}, {mood_adj}, and told the {stock.pl}
        the banns were [talked|spoken] of at {inn}, {comment}
        {A.kin} [began|started] to {chore} for the {event}
        """,
    ),
    "wedding": (
        """
        {A} and {B} were married {when_start} in the {building} at {P}
        {when_start} the bells were rung for {A.full} and {B.full}
        {weather} when {A} and {B} were married, but [nobody|no one|not a soul] minded
        """,
        """
        the bride [had|wore] {flower.pl} and {herb} in her [hair|sleeves|belt], and the groom [had \
            borrowed|wore|had been lent] {a} {color} {garment}
        there were {count} guests, {small} {dish.pl} to each, and {drink} [until|till] {hour}
        {folk_a} played the {instrument}, and {group} danced from the {building} to the {street}
        among the presents were {goods_list}
        {folk_a} wept, {folk_a} slept, and {folk_a} made a speech about {matter}
        the {dish.pl} came from {Q}, the {drink} from {inn}, and the {fowl.pl} uninvited
        {A.kin} gave {wood_a}, and {folk_a} {a} {vessel} of {drink}
        it was {hour} before the last {folk} went {whither}
        """,
        """
        "{C proverb}," said the {office}, and [everybody|everyone] laughed
        {when_soft} they moved into the {building} {where} with {thing_a} and {small} {stock.pl}
        {A} broke {a} {vessel} for luck and {a} {kitchenware} by mistake
        the {dish.pl} that were left over lasted {group} [until|till] {month_any}
        """,
    ),
    "flood": (
        """
        {when_start}, the {river} rose {count} feet and stood in the {room} of {A.his} house
        it rained for {count} days, the {river} was {flow_adj}, and {O.the} at {P} [began|started] to lean
        {A} woke at {hour} to {a} {sound_adj} {sound}: the {river} had come over the {land}
        the {weather_thing} took [the roof|half the roof|a wall] off {O.the} at {P} {when_start}
        in [a single|one|the second] night of {weather_thing} the {river} took {small} {stock.pl} and the \
            {opening} of {O.the}
        {when_start}, {folk_a} came {motion.ing} {whither}: the {river} was in {O.the}
        """,
        """
        {A} and {B} carried {goods_list} up to the {room}
        {fowl.pl}, {vessel.pl} and {a} whole {woodware} floated {whither}
        {group} passed {vessel.pl} of water from hand to hand {where}
        {B} rowed {whither} in {a} {vessel_big} to fetch {folk_a}
        {a} {stock} stood on the {mark} and bellowed, [and no one could reach it|up to its belly in the \
            flood|until {B} waded out to it]
        """,
        """
        "{C short}," {B.said}, up to the {water_depth} in water
        "save the {drybox.pl}," {A.said}, "and let the {woodware.pl} go"
        "{C question}?" {A.asked}
        "I have [not seen the like|not been so wet|never laughed so little|not lost so much|not rowed so far|had \
            no such {mood}] since {folk_a} {haul.d}," {B.said}
        """,
        """
        at {hour} it [began|started] to fall, and left {filler_stuff}, {fish.pl} and {thing_a} {where}
        [nobody|no one|not a soul] was [drowned|hurt], [though|although] {folk_a} lost {goods_list}
        {when_soft} they [counted|dried|laid out] what was left: {goods_list}
        {O.the} had lost its {opening}, its {fabric} and {small} {drybox.pl} of {dry}
        """,
    ),
    "rebuilt": (
        """
        {group} [set about|made a start on|turned to] {O.the} {when_start}, with {hardware} from {Q} and {wood} \
            from {far}
        {A} gave {price} towards {O.the}, which the {river} had spoiled
        {O.the} stood open to the sky [until|till] {month}, {comment}
        {when_start}, {A} measured what was left of {O.the}
        the {office} lent {small} {folk.pl} to help with {O.the}
        {A} and {B} had promised to have {O.the} ready by the {event}
        """,
        """
        {B} {mend.d} the {opening.pl} and {A} {mend.d} the {fabric}, {manner_plain}
        {a} line was cut in the {perch} to show [how high the water had come|where it had stood|what the {river} \
            could do]
        the new {opening} was {fine}, the new {fabric} was {fine}, and only the {sound} was the old one
        "{C talk}," {A.said}, looking at the {river}
        in the mud behind it {A} found {a} {treasure} that had been lost since {past_month}
        {folk.pl} sang at the work, {animal_pl} looked on, and {A} counted the {hardware}
        {B} wanted {wood}, {A} wanted {metal}, and they used {wood} with {metal} on top
        the dog from the {homes} next door {dog_act.d} at every blow of the {handtool}
        """,
    ),
    "chest": (
        """
        {when_start}, {A} opened {O.a} that had stood in the {room} since the {event}
        {a} {relation} of {A.full} had died at {far} and left {A.him} {O.a}
        {A} bought {O.a} at the {event} and found it {degree} heavy
        """,
        """
        in it lay {keepsakes}
        on top was {reading_matter_a}; below it {keepsakes}
        {A} took out {clothes_a}, {treasure_a}, {small} {garment.pl} and {a} dried {fish}
        at the very bottom, under {a} {cloth} {garment}, was {a} {metal} {treasure}
        everything smelled of {smell}, and {small} {insect.pl} {roam.d} {whither}
        """,
        """
        "{C question}?" {B.asked}, holding up {a} {garment}
        "that was my {kin_any}'s," {A.said} {adv_say}, "who {haul.d}"
        {B} offered {price} for {O.the}, and {price} without the {insect.pl}
        there were initials on the {treasure}, but [neither could read them|they told nobody anything|the rest \
            was worn away]
        """,
        """
        {A} kept the {treasure}, gave {B.him} the {garment}, and burned the rest {where}
        {when_soft} {A} wondered who had {chore.en} with {a} {handtool} like that
        {O.the} stands {where} to this day, full of {linens.pl}
        [nothing in it|not one of the things|hardly any of it] was worth {price}, {comment}
        """,
    ),
    "stranger": (
        """
        {when_start} {folk_a} whom [nobody|no one|not a soul] knew came {whither} with {O.a}
        a stranger in {a} {color} {garment} asked {A.him} the way to {Q}
        {folk_a} from beyond {far} put up at {inn}, paid with {a} {treasure}, and asked about {matter}
        {A} was {chore.ing} {when_start} when a stranger [asked for|begged|offered {price} for] {a} {vessel} of \
            {drink}
        {when_start} a stranger with {O.a} sat down {where} and [would not say why|took off both {footwear.pl}|slept]
        {group} ran to {A.him} with word of {folk_a} in {a} {fine_cloth} {outer}
        """,
        """
        the stranger was {build_adj}, {temper} and [spoke as they do at|had the accent of|swore like a carter \
            from] {far}
        the stranger sold {goods_list}, {manner_wild}
        for {price} one might look at {O.the} through {a} {treasure}
        {B} bought {thing_a} and [would hear no word against it|showed it to everyone|was {mood_adj} ever after]
        {group} took the stranger for {a} {office}, the [children|little ones|young people] for {a} ghost
        the stranger {chore.d} for {a} bed and {pastime.d} for {meal}
        the stranger [knew|sold|taught them] {a} cure for {illness}, which was to {remedy_vp}
        {folk_a} had [seen|met|heard of] the same stranger at {far}, {pastime.ing}
        """,
        """
        "{C talk}," said the stranger
        "{C question}?" {A.asked}
        "{C short}," said the stranger, and {gesture.d}
        "at {far}," said the stranger, "{talk}, and no one minds"
        "how far is {Q}?" asked the stranger. "And is it {opinion_adj} to [go by|leave|trust] the {way}?"
        "my {kin_any} was [born|married|cheated|buried] here," said the stranger, "in {a} {homes} {where}"
        "{price} for the [night|bed|{storage}]," {A.said}, "and you leave {O.the} [outside|with me|{where}]"
        """,
        """
        [in the morning|by {hour}|next day] the stranger [was gone|had left|had vanished], and [so was|with the \
            stranger|so had] {a} {stock}
        the stranger left {thing_a} {where} and was {adv_often} spoken of [afterwards|later]
        {A} kept {O.the}, and [never found out what it was for|used it as {a} {vessel}|hid it in the {storage}]
        {when_soft} it was said that {gossip}
        {small} weeks later {folk_a} came from {far} and [asked after that very stranger|wanted to know \
            everything|laughed at the story]
        {B} [followed|went along|gave chase] as far as the {crossing} and [came back|returned] {mood_adj}
        what [remained|was left|they kept] was {a} smell of {smell} and {a} {worn} {footwear}
        """,
    ),
    "harvest": (
        """
        {group} [began|started] to {work} {when_start}
        {A} had {small} [hired hands|cousins|neighbours|day labourers|{folk.pl}] to help {A.him} {work} that {season}
        {weather}, which was what {A} had waited for, and {group} {work.d}
        {A} and {B} had agreed to {work} together and to {work} [afterwards|later]
        """,
        """
        {folk_a} {work.d}, {folk_a} {work.d}, and {folk_a} sat under {a} {tree} and gave advice
        {A} {work.d} {manner}, while {B} {work.d} {where}
        the {mount.pl} sweated, the carts creaked, and the {bird.pl} {bird_act.d} over the {land}
        there were {dish.pl} at noon {where}, and {drink} in {a} {worn} {vessel}
        by {hour} they had {small} {drybox.pl} of {grain} and {a} broken {fieldtool}
        """,
        """
        ?
        "{C question}?" {B.asked}
        "{weather_thing} by {hour}," {A.said}, "and {talk}"
        "my {body} is broken," {B.said}
        "{C proverb}," {A.said}
        """,
        """
        the {grain} fetched {price}, which was {degree} {opinion_adj}
        {when_soft} they {work.d} again, for {cause}
        {A} reckoned that there would be {grain} [until|till] {month_any}, if {folk_a} did not {haul}
        what with the {weather_thing} and the {bird.pl}, half of it had {harvest_state}
        {group} slept [that night|afterwards] where they [lay|had fallen|were], in the {building} and {where}
        """,
    ),
    "funeral": (
        """
        {folk_a} of {P}, known for {virtue} and {dish.pl}, was buried {when_start}
        {when_start} they buried old {old_name}, who had {haul.en} in {far} as a young {folk}
        {A} went to the funeral of old {old_name} at {Q}, {manner}
        """,
        """
        the grave was dug {where}, in {land_adj} ground, by {folk_a} who {fuss.d}
        {group} told how the dead {folk} had {haul.en}, {haul.en}, and paid for it all in {crop.pl}
        {A} remembered {a} {sky} day when [the two of them|they|all three] had {pastime.en} {where}
        the {office} spoke of {virtue}, of {virtue}, and at some length of {matter}
        """,
        """
        "{C talk}," {B.said}, {gesture.ing}
        "[nobody|no one|not a soul] {pastime.d} like that," {A.said} {adv_say}
        the will left {goods_list} to {folk_a}, and to {A.him} {thing_a}
        [afterwards|later] there was {dish_a}, and {drink}, and the talk turned to {matter}
        {small} {bird.pl} sat on the {perch} all through it, {comment}
        """,
    ),
}
