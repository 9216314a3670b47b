"""Scenes in which something happens, many with a sequel some paragraphs later, as templates (grammar: \
    ``_phrases``)."""

from __future__ import annotations

from collections.abc import Mapping

# the kind of thing that a scene turns on: a table of nouns, drawn once and kept for the sequel
OBJECTS: Mapping[str, str] = {
    "quarrel": "disputed",
    "lost": "beast",
    "repair": "breakable",
    "letter": "relation",
    "debt": "thing",
    "chest": "furniture",
    "gossip": "rumoured",
    "council": "crossing",
    "theft": "treasure",
    "stranger": "thing",
    "journey": "conveyance",
    "flood": "building",
}
SEQUELS: Mapping[str, str] = {
    "quarrel": "reconcile",
    "lost": "found",
    "repair": "repaired",
    "letter": "visit",
    "journey": "homecoming",
    "gossip": "truth",
    "illness": "recovery",
    "debt": "repaid",
    "council": "built",
    "theft": "culprit",
    "courtship": "wedding",
    "flood": "rebuilt",
}

EVENTS: Mapping[str, tuple[str, ...]] = {
    "quarrel": (
        """
        {A} and {B} fell out over {O.a} {when_start}
        the quarrel between {A} and {B} began with {O.a} and a remark about {matter}
        {when_start}, {A} accused {B.him} of having {mischief.en}
        {A} had always held that {O.the} {where} belonged to {A.kin}, and {B} held the contrary
        """,
        """
        "{C question}?" {A.asked} {adv_say}
        "you {accuse.d} my {kin_any}," {B.said}, "and now you want {O.the}"
        "{C talk}," {A.said}, "and you know it"
        "you are {temper}, your {kin_any} was {temper}, and your {beast} is {temper} too," {B.said}
        "{O.the} was promised to me {where}," {B.said}, "in the week of the {event}"
        """,
        """
        {A} threw down {a} {kitchenware} and {motion.d} {whither}
        {B} {fuss.d}, {gesture.d}, and called {A.him} {a} {temper} {animal}
        {group} came out to listen, {manner_plain}, and {folk_a} took bets in {coin}
        [one word led to another|they shouted until {hour}|neither would give way], and {a} {pot} went through \
            the {opening}
        both were {mood_adj}, both were {temper}, and neither had {chore.en} that day
        """,
        """
        [after that|from then on|from that day] they [did not speak|avoided each other|crossed the street] for \
            {count} days, {comment}
        {A} told everyone {where} that {talk_past}
        {when_soft} {A} built a fence of {wood} and {wood} between the {land} and the {land}
        the {office} was sent for, heard [them both|one of them|both sides], and {fuss.d}
        "{O.the} is not worth {price}," said the {office}, but neither listened
        """,
    ),
    "reconcile": (
        """
        the quarrel over {O.the} lasted [until|till] {month}, when {A} and {B} met by chance {where}
        {A} had not forgiven {B.him} for the affair of {O.the}, but {cause}
        {when_start}, {B} came to see {A.him} with {qty_goods} and {a} {mood_adj} face
        it was {folk_a} who made peace [at last|finally] between {A} and {B}
        """,
        """
        "{C talk}," {B.said}, "and I was {mood_adj}"
        "keep {O.the}," {A.said}. "{C talk}"
        {B} {gesture.d}, {fuss.d}, and offered {price} for {O.the}
        they stood {where} for a while and spoke of {matter}
        "we were both {temper}," {A.said} {adv_say}
        """,
        """
        they shook hands over {a} {vessel} of {drink}, {comment}
        {O.the} was given to {folk_a}, who had no use for it
        {when_soft} {A} {kindness.d}, and the fence of {tree} came down
        since then {A} has {adv_often} {kindness.en}
        {group}, who had taken sides, were {degree} {mood_adj}
        """,
    ),
    "lost": (
        """
        {when_start}, {A} found that {O.a} was missing from the {building}
        {O.a} belonging to {A.him} had got out of the {building}, for {cause}
        {A} lost {O.a} {where}, and {fuss.d}
        the gate of the {building} had been left open, and {O.a} of {A.full} was gone
        """,
        """
        {A} looked for {O.the} {where}, {where}, and even in the {room}
        {B} had seen {O.the} at {hour}, going {whither}
        {A} and {A.kin} called [until|till] {hour}, {comment}
        {A} offered {price} and {thing_a} to anyone who found {O.the}
        there were tracks {where}, but they were those of {a} {wild}
        """,
        """
        "{O.the}?" {B.asked}. "{C short}"
        "[somebody|someone] has {mischief.en}," {A.said}, "and {talk}"
        "ask {folk_a}," {B.said} {adv_say}, {gesture.ing}
        "it will come home when the {crop.pl} are ripe," {B.said}
        "{C question}?" {A.asked}
        """,
        """
        by {hour} they had found {a} {treasure}, {small} {crop.pl} and {a} dead {bird}, but not {O.the}
        {A} slept {where} that night with {a} lantern and {a} {fieldtool} beside {A.him}
        {when_soft} {A} gave up the search and {chore.d}
        the {building} seemed {degree} empty without {O.the}
        """,
    ),
    "found": (
        """
        {O.the} that {A} had lost was found {where} {when_start}
        {B} came {motion.ing} {whither} with news of {O.the}
        {when_start}, {A} heard {a} {sound_adj} {sound} {where}, and there stood {O.the}
        {folk_a} from {far} brought {O.the} back to {A.him}, thin and {mood_adj}
        {O.the} came back on its own account {when_start}, {comment}
        {A} was {chore.ing} when {O.the} put its head in at the {opening}
        a boy saw {O.the} {where} {when_start} and ran to tell {A.him}
        """,
        """
        it had lived on {crop.pl} and {plant.pl}, and was {degree} {coat} with mud
        {O.the} had {a} {drybox} on its head and {small} {herbplant}s in its coat
        "{C talk}," {B.said}, "but there it was"
        {A} {gesture.d}, laughed, and led it {whither}
        "you {temper} {beast}," {A.said} {adv_say}
        it had been seen at {Q}, at {far}, and once in the {public}
        {A} counted its [legs|teeth|ribs], looked into its [mouth|ears|eyes], and was {mood_adj}
        "it has been eating {root.pl}," {B.said}, "and not its own"
        there was {a} {herbplant} in its tail and {mood} in its eye
        """,
        """
        {B} took {price} and {thing_a} for {B.his} trouble, {comment}
        {A} hung {a} {metal} bell on it, [so that it should not happen again|just in case|which could be heard \
            as far as the {land}]
        from then on {O.the} slept in the {room}, {comment}
        {A} mended the {opening} with {small} nails and a length of {textile}
        {A} gave it {grain} and {a} talking-to, {manner}
        {folk_a} asked {price} for what it had eaten, and got {count} {coin}
        that {season} {A} mended every {opening} of the {farm}
        """,
    ),
    "repair": (
        """
        {when_start}, {O.the} {where} {spoil.d} with {a} {sound_adj} {sound}
        {O.the} of the {building} had {spoil.en}, and {A} was [asked|told|hired|begged] to see to it
        {weather}, and in the night {O.the} of the {building} {spoil.d}
        {A} noticed that {O.the} {where} was {worn_hard}, {worn_hard} and no longer safe
        {A} was halfway through {meal} when {O.the} of the {building} {spoil.d}
        {B} came {motion.ing} {whither}: {O.the} of the {building} had {spoil.en}
        for {count} weeks {O.the} of the {building} had let in {wet_weather}, and now {A} was to {mend} it
        """,
        """
        {A} fetched {tool_a}, {a} {handtool} and {a} {drybox} of {hardware}
        first the {hanging} had to [come down|be propped|be cut]; then {a} [beam|length|prop] of {wood} was \
            wedged {where}
        {B} held the {handtool} and {A} {mend.d} the {fabric}, {manner_plain}
        under the {fabric} they found {treasure_a}, {a} {worn_cloth} {footwear} and the nest of {a} {wild}
        without {hardware} [nothing|little|no more] [could be done|was possible|got done], and there was [none \
            nearer than|not one to be \
            had this side of|nothing of the kind short of] {Q}
        {A} measured everything {count} times with {a} length of {textile}, {fuss.d}, and measured it again
        {A} [crawled|climbed|squeezed] under it with {a} [lantern|candle|{handtool}] and came out covered with \
            {filler_stuff}
        they needed {a} {machine}, {small} lengths of {textile} and more {virtue} than {B} had
        {A} sent {B.him} to borrow {a} {machine} from {folk_a}, and {chore.d} in the meantime
        the old {fabric} was {worn_hard}, so {A} {mend.d} that first, {manner}
        {A} cut {small} pegs of {wood} and boiled up {filler_stuff} in {a} {pot}
        """,
        """
        "{C question}?" {B.asked}
        "whoever built this used {filler_stuff} for {filler_stuff}," {A.said}
        "{price}," {A.said}, "and you bring the {hardware}"
        "my {kin_any} would have [used|asked for|sworn by] {wood}," {B.said}
        "hand me the {handtool}," {A.said}. "No, the {worn_hard} one"
        "it was {filler_stuff} that did it," {A.said}, "{filler_stuff} and {weather_thing}"
        "how long will it take?" {B.asked}, and {gesture.d}
        "hold this {handtool}," {A.said}, "and think of {matter}"
        "I would have used {metal}," {B.said} {adv_say}
        """,
        """
        by {hour} [half|a third|most|a little] of the [work|job|{fabric}] was done, and it was {weather_ing}
        they covered it with {cloth} and [went|walked|repaired|ran] to {inn}
        the work took {count} days and {small} {drybox.pl} of {dry}
        {when_soft} {A} drove in the last nail, {manner}
        when it grew dark {A} lit {a} {worn} lantern and went on {manner}
        the {office} came to inspect it, {fuss.d}, and walked off {whither}
        that week {A} used up {small} {drybox.pl} of {hardware} and wore through {a} {knitwear}
        {A} went home with {filler_stuff} in both ears and was {mood_adj}
        """,
    ),
    "repaired": (
        """
        {O.the} that {A} had mended held [through the whole of|until the end of|for all of] {month}
        {group} came to look at {O.the}, which {A} had painted {color}
        the bill for {O.the} came to {price}, {comment}
        {A} had [hardly|scarcely|barely] finished with {O.the} when the {fabric} next to it {spoil.d}
        {weather}, but {O.the} that {A} had mended kept its place
        {A} came to ask {price} for {O.the}, which was {state_of} and had been so since {past_month}
        after all that work {O.the} was as {fine} as any between {P} and {Q}
        """,
        """
        "{C talk}," {B.said}, and knocked on it with {a} {handtool}
        "it will outlast the {building}," {A.said}
        {B} {adv_often} complained that it {sound_verb.d} in the {weather_thing}
        {small} {bird.pl} nested in it before {month_any} was out
        {B} paid in {dry}, {drink} and promises
        "there is {a} {leak} in it already," {B.said}, pointing at the {fabric}
        {B} gave {qty_goods} on account and {fuss.d}
        the {dog} lay down beside it and {dog_act.d}
        """,
    ),
    "letter": (
        """
        {when_start}, a letter came for {A.him} from {A.his} {O} at {far}
        the {office} [brought|handed|gave] {A.him} a letter that had been {count} weeks on the road
        {A} had a letter from {far}, {worn}, {worn} and smelling of {smell}
        {A} asked {B.him} to read out a letter from {A.his} {O} at {far}
        {A} was {chore.ing} when {a} letter came from {far}
        a carter from {far} had {a} letter for {A.him} under his {headgear}
        {when_start}, after {count} weeks of waiting, {A} heard from {A.his} {O} at {far}
        """,
        """
        the letter said that {talk_past}, that {talk_past}, and that {talk_past}
        the writer of the letter had {haul.en}, was {mood_adj}, and sent {qty_goods}
        [half of the letter|the first page|all but the greeting] was about {matter} and the other half about {a} \
            {body} that would not mend
        "dear {A.name}," the letter began, "{talk}, and {talk}"
        the hand was {size} and {degree} shaky, and [a word that ought to have been|what was surely meant \
            for|what must have been] "{garment}" looked like "{stock}"
        according to the letter {cause}, and {gossip}
        there was news of {a} {event}, of {a} {coat} {stock}, and of {a} {temper} {kin_any} with {a} {ailment_n}
        with it came {qty_goods}, wrapped in {a} page of {reading_matter_a}
        it was signed by {a} {relation}, witnessed by {folk_a}, and {degree} wet
        """,
        """
        {A} read the letter {count} times, {gesture.d}, and put it behind the {ornament}
        {B} wondered {adv_say} whether {talk_past}
        "{C question}?" {B.asked}
        "my {O} is coming before the {event}," {A.said}, "with {goods_list}"
        "{C short}," {A.said}, and folded the page {manner_wild}
        "is that all?" {B.asked}, and {gesture.d}
        "{talk}," {A.said}. "[That is what it says, word for word|And there is more on the back|Or perhaps the \
            other way about]"
        {A} held it to the lamp, {fuss.d}, and asked for {drink}
        {B} offered to {errand}, since there was {adv_often} an answer to carry
        """,
        """
        {when_soft} {A} answered the letter [on the back of|on a page torn from|between the lines of] \
            {reading_matter_a}
        {A} wrote that {talk_past}, [sanded the page|sealed it with wax|blotted it twice|folded it small], and \
            walked with it {whither}
        the answer to {far} cost {price} to send, {comment}
        in {P} [everybody knew|half the street knew|they all knew] what was in [the letter|it|the envelope] \
            before {hour}
        {A} kept the letter in {a} {storage} with {small} others
        that night {A} wrote {count} lines about {matter}, tore them up, and {pastime.d}
        by way of answer {A} sent {qty_goods} and no letter at all
        a week later {A} could not find it, and suspected the {dog}
        """,
    ),
    "visit": (
        """
        {A.his} {O} arrived from {far} {when_start}, with {goods_list}
        {when_start}, the [visitor|guest|relative] [who had been announced to|expected by] {A.him} came \
            {whither} in {a} {worn} {conveyance}
        {A} had {chore.en} and {chore.en} before the visitor from {far} arrived
        """,
        """
        the guest was {said_of_people}, wore {a} {color} {cloth} {garment}, and ate nothing but {dish.pl}
        they had not met since the {event} at {Q}, when {cause}
        there were presents: {goods_list}
        the guest admired the {woodware}, doubted the {dish}, and slept [until|till] {hour}
        {B} came to look, {gesture.d}, and stayed for {meal}
        """,
        """
        "{C talk}," said the guest
        "at {far} we {chore} every {month_any}," said the guest, "and [nobody|no one|not a soul] is {mood_adj}"
        "{C question}?" {B.asked}
        "you have grown {build_adj}," said the guest {adv_say}
        "stay [until|till] the {event}," {A.said}, [though|although] {A.he} was {mood_adj}
        """,
        """
        after {count} days the guest left {whither}, {comment}
        [when the guest had gone|that evening|at the next washing day] {A} found that {a} {treasure} had gone too
        {A} waved from the {opening} and then {chore.d}
        [nobody|no one|not even {a} {dog}] slept in that bed [again|any more] before {month_any}
        """,
    ),
    "journey": (
        """
        {when_start}, {A} left {P} for {Q} in {O.a} to {errand}
        {A} had to {errand}, and that meant going to {Q} by way of {far}
        {A} packed {goods_list} and set out for {Q}, {manner}
        {A} told only {B.him} of the journey to {Q}, for {cause}
        """,
        """
        the road ran past {a} {land_adj} {land}, over the {crossing}, and through {small} miles of {tree} wood
        at the {crossing} {folk_a} asked {price} to let {A.him} pass
        {A} spent the [first|second|third] night {where} with {a} {folk} who {pastime.d} [until|till] {hour}
        {weather}, and {O.the} stuck in the mud {where}
        before {far} the {river} was {flow_adj}, and {A} had to wait {count} hours for the {office}
        {A} met {folk_a} with {goods_list}, and they went on together {whither}
        """,
        """
        ?
        "{C question}?" asked the {folk}
        "{C short}," said the {folk} at the {crossing}
        "I am only going to {errand}," {A.said}
        "the {crossing} is {worn} and the {land} is {land_adj}," said {folk_a}. "Go round by {far}"
        """,
        """
        {A} reached {Q} at {hour}, {mood_adj}, and asked for {a} bed and {dish_a}
        by {hour} the roofs of {Q} came in sight, {color} above the {land}
        {when_soft} {A} sent word to {B.him} that {talk_past}
        at {Q} [nobody|no one|not a soul] had heard of the {matter}, and the {office} was away at {a} {event}
        """,
    ),
    "homecoming": (
        """
        {A} came back from {Q} {when_start} with {goods_list}
        {when_start}, {B} saw {A.him} {motion.ing} {whither} beside {O.the}
        it was {month} before {A} [came|returned] home from {Q}
        {O.the} came back to {P} without {A.him}; {A.he} followed on foot at {hour}
        """,
        """
        {A.he} had {haul.en} on the way, {comment}
        at {Q}, it turned out, {group} had {chore.en} and {cause}
        {A} had [brought|found|bought] {thing_a} for {B.him} and {thing_a} for {A.kin}
        {A.his} {garment} was {worn}, {A.his} {body} hurt, and {A.he} smelled of {smell}
        """,
        """
        "{C question}?" {B.asked}
        "at {Q} they say that {gossip}," {A.said}
        "{C talk}," {A.said}, unpacking the {drybox}
        "never travel with {a} {temper} {folk}," {A.said} {adv_say}
        """,
        """
        {when_soft} {A} sat down {where} and told it all again
        {B} listened, {gesture.d}, and believed about half
        {A} has {adv_often} spoken of {Q} since, {comment}
        the next day {A} {task.d} as though there were no {Q} in the world
        """,
    ),
    "apprentice": (
        """
        {A} took on an apprentice {when_start}, {a} {build_adj} boy from {far}
        {A.his} new apprentice was {said_of_people}, and ate {small} {dish.pl} a day
        {when_start}, the apprentice was to {task} [alone|unwatched|by candlelight] for the [first|second] time
        {B} had {a} nephew who was [good for nothing|{said_of_people}|fond of {dish.pl}], and {A} had work for \
            [two|three|a regiment]
        """,
        """
        the boy {chore.d}, {chore.d}, and [was asleep|lay down|could be found] {where} by {hour}
        on the {ord} day he [spoiled|dropped|gave away] {small} {drybox.pl} of {dry} and hid {where}
        {A} [showed him|told him|taught him] how to {task} and [how not to hold|where to hang|what to call] {a} \
            {handtool}
        he could {pastime} better than [anyone|{folk_a}|most], but he could [not|barely|never] {task}
        [instead of|far from] {chore.ing} he had {mischief.en}, and {A} [heard of it|had to pay for it|was told \
            so] at {inn}
        """,
        """
        "watch [my hands|the {handtool}|me]," {A.said}, "and [never mind|forget] the {animal}"
        "[how long before I may|why can I never|who else has to] {task}?" asked the boy
        "{C talk}," {A.said}, "so start again"
        "[at his age|in my time|at {far}]," {B.said}, "you {haul.d}, if I remember"
        """,
        """
        towards {month_any} he could {task} as {adv} as anybody, {comment}
        {A} gave him {price} and {thing_a}, and was {mood_adj} about both
        he ran [home|away|off] to {far} {when_soft}, and [walked back|was brought back|came back {mood_adj}] \
            {when_soft}
        {A} would not have [parted with him|sent him back] for {price}, [and never told him so|whatever {folk_a} \
            offered]
        """,
    ),
    "wager": (
        """
        {A} wagered {price} {when_start} that no one could {chore} before {hour}
        at {inn} {A} and {B} laid a wager about {a} {coat} {mount}
        {when_start}, {B} bet {thing_a} that {A} could not {task} with one hand
        [the whole street knew of|nobody had wanted|it was {folk_a} who began|{group} had wished for|{cause}, \
            and so began] the wager between {A} and {B}
        """,
        """
        {group} came to watch, with {dish.pl} and {a} {instrument}
        they [started|set off|leapt away] from the {public}, ran {whither}, and [were lost|vanished|came out \
            again] behind the {tree.pl}
        {A} [got as far as|led until|fell at] the {mark}, {fuss.d}, and sat down
        {B} was ahead by {count} yards when {a} {stock} came {whither}
        the {office} held the [money|stakes|watch] and looked {mood_adj}
        """,
        """
        "{count} {coin} on the {temper} one!" cried {a} {folk}
        "that was not in the terms," {B.said} {adv_say}
        "{C question}?" {A.asked}, [out of breath|from the ground|limping]
        "I [could have won|was ahead|ran well enough]," {A.said}, "but for [the|this|all that] {weather_thing}"
        """,
        """
        {B} won {price}, and spent it on {drink} for {group}
        it was [declared|called|put down as] {a} draw, {comment}
        {A} had to {chore} for {count} days [in front of everyone|by way of payment|as agreed]
        neither of them could {task} for {count} days after it
        """,
    ),
    "show": (
        """
        {A} had entered {a} {fruit} tart and {a} {coat} {stock} for the {show} at {Q}
        {when_start} was the {show}, and {A} rose at {hour} to wash {a} {stock}
        for the {show} {A} had grown {root.pl} the size of {a} {pot}
        {A} and {B} had both entered {root.pl} for the {show}
        """,
        """
        the judges were {a} {office}, {a} {folk} and {a} lady from {far} with {a} {fan_n}
        in the tent it smelled of {smell}, {herb} and hot canvas
        {B.his} {stock} ate {A.his} {root.pl} a little before {hour}
        [rows|hills|circles] of {crop.pl} lay on {linens.pl}, each with {a} [card|label|ticket] and {a} {fowl} feather
        the {dog} got under the table, and {small} {dish.pl} [were never judged|went with it|had to be withdrawn]
        """,
        """
        "{C short}," said the lady from {far}
        "who feeds {a} {stock} on {dry}?" {B.asked}
        "they gave first place to {folk_a}," {A.said}, "who cannot {chore}"
        "look at the {leaf_color} ones," {A.said}, "and [then tell me|do not say|never let them say] that {talk_past}"
        """,
        """
        {A} came {ord}, and hung the [ribbon|card|certificate] in the {room}
        the prize was {thing_a}, {comment}
        {B} left early, {mood_adj}, with {a} {vessel} of {drink}
        [on the way back|at home|that night] they ate what had [not won|lost]
        """,
    ),
    "swarm": (
        """
        {A} [heard|saw|smelled] the bees [before|after|during] {meal}: they had [swarmed|gathered|settled] {where}
        {when_start}, [a swarm of bees|{a} cloud of bees|{count} pounds of bees] settled on the {fabric} of the \
            {public}
        {B.his} bees had [left their skep|gone off|flown out] and hung {where} like {a} {knitwear}
        """,
        """
        {A} [went under them|climbed up|knelt down] with {a} {drybox}, {manner}
        {group} [beat on|rattled|struck] {pot.pl}, which, [as {folk_a} explained|according to {folk_a}], \
            {adv_often} helps
        the {office}{v_he}, who had come to {errand}, {gesture.d} and ran {whither}
        {B} put {a} {linens} over {B.his} head and [walked into|felt for|missed] the {opening}
        {A.kin} lit {a} bundle of {herb} and [blew the smoke|puffed|fanned it] through {a} {kitchenware}
        """,
        """
        "[stand still|do not breathe|keep calm]," {A.said}, "and think of {dish.pl}"
        "they were mine {where}," {B.said}, "[but they are yours now|and they are mine here|and they were never \
            {temper} before]"
        "{C question}?" {B.asked} from behind the {machine}
        "{C proverb}," said {a} {age_adj} {folk}
        """,
        """
        by {hour} [they were in the skep|it was done|all was quiet], and {A} had {count} stings and {a} swollen {body}
        they gave {small} {pot.pl} of [dark|pale|thin|good] honey that {season}, {comment}
        the [swarm|cloud|whole cluster] rose, [hummed|circled|divided], and [went off|sailed away|was gone] {whither}
        {B} stayed in the {room} until {month_any}, or so it was told
        """,
    ),
}
