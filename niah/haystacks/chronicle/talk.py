"""Talk between two people in a chronicle: what is said about a topic, and what is answered (grammar: \
    ``_phrases``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Topic(NamedTuple):
    """``noun`` is the table or rule that ``{T}`` is drawn from; the rest are templates, one a line."""

    noun: str
    opening: str
    reply: str
    end: str


TOPICS: Mapping[str, Topic] = {
    "weather": Topic(
        "weather_thing",
        """
        "there will be {T} before {hour}," {A.said}
        "do you think the {T} will hold [until|till] the {event}?" {A.asked}
        "I have not seen such {T} since {past_month}," {A.said}, looking at the {opening}
        "they had {T} at {far}," {A.said}, "and it took {small} {stock.pl}"
        "this {T} will be [the end|the ruin|the death] of the {root.pl}," {A.said} {adv_say}
        """,
        """
        "{T} is good for the {grain}," {B.said}
        "my {kin_any} says that it comes from {far}, {T} and all," {B.said}
        "then I shall {chore} first," {B.said}, "and you may talk about {T}"
        "and when did {T} ever ask you?" {B.asked}
        "you said so about the {event} too," {B.said}, "and it was {sky}"
        """,
        """
        {A} [looked|glanced|stared|peered] at the {land} and was not so sure
        {when_soft} it was as {sky} as before
        "we shall see," {A.said} {adv_say}, and {gesture.d}
        """,
    ),
    "price": Topic(
        "stuff",
        """
        "{price} for {a} {drybox} of {T}!" {A.said}. "At {far} it is [half that|cheaper|given away|better]"
        "what are they asking for {T} at {Q}?" {A.asked}
        "I paid {price} for {T}," {A.said}, "and it was full of {insect.pl}"
        "no {T} can be had before the {event}," {A.said}
        """,
        """
        "do without {T}, then," {B.said}. "We did, in my {kin_any}'s time"
        "the {office} buys it all," {B.said} {adv_say}, "and keeps it in {a} {storage}"
        "you might ask {folk_a}," {B.said}, "but take {price} with you"
        "who needs {T} in {month}?" {B.asked}
        """,
        """
        {A} reckoned it up on {A.his} fingers and {fuss.d}
        "[then it will have to be|then I shall make do with|let it be] {stuff}," {A.said}
        between them they had {price}, {comment}
        """,
    ),
    "stock": Topic(
        "stock",
        """
        "that {T} of yours [has been in|has trampled|was seen in] my {root.pl}," {A.said}
        "would you sell the {coat} {T}?" {A.asked}
        "my {T} eats nothing but {herbplant}s," {A.said}, "and looks {mood_adj}"
        "I [have been offered|was offered|could get|paid] {price} for the {T}," {A.said} {adv_say}
        """,
        """
        "{a} {T} goes where it likes," {B.said}
        "give it {drink} with {herb}," {B.said}, "and keep it out of the {water}"
        "my {kin_any} had {a} {T} like that," {B.said}, "and it lived to be {count}"
        "for {a} {T} with one {coat} ear?" {B.asked}. "You are {temper}"
        """,
        """
        the {T}, {where}, {dog_act.d}
        "tie it up, at any rate," {A.said}, and {gesture.d}
        {A} went to look at the {T} before {meal} [all the same|nevertheless|even so]
        """,
    ),
    "neighbour": Topic(
        "folk",
        """
        "have you heard about the {T} at {far}?" {A.asked}
        "the {T} came by at {hour}," {A.said}, "and wanted to {errand}"
        "I never trusted that {T}," {A.said} {adv_say}
        "they say that the {T} has {haul.en}," {A.said}
        """,
        """
        "the {T} is {said_of_people}," {B.said}, "and that is all I know"
        "was that the {T} with the {color} {garment}?" {B.asked}
        "I would [sooner|rather] lend to {a} {wild} than to that {T}," {B.said}
        "let people talk," {B.said}. "The {T} once {kind_act.d} my {kin_any}"
        "so did the last {T}," {B.said}, "and [nobody|no one|not a soul] minded"
        """,
        """
        "[all the same|nevertheless|even so]," {A.said}, "I shall count the {ornament.pl}"
        {A} {fuss.d}, for the {T} was a cousin of {A.kin}
        at that moment the {T} {motion.d} past, {mood_adj}, and they spoke of {matter}
        """,
    ),
    "health": Topic(
        "body",
        """
        "how is the {T}?" {A.asked}
        "[you ought to do something about|have somebody look at|you should not neglect] that {T}," {A.said}
        "my {T} has hurt since {past_month}," {A.said} {adv_say}
        "I fell on the {perch}," {A.said}, "and the {T} has not been right since"
        "does your {T} still ache in the {weather_thing}?" {A.asked}
        "see what {a} {stock} has done to my {T}," {A.said}
        "I slept on the wrong side," {A.said}, "and now my {T} will not turn"
        "they cured {a} {T} at {far} with {herb}," {A.said}
        """,
        """
        "rub it with {grease}," {B.said}, "and {remedy_vp}"
        "no worse than in {past_month}," {B.said}, and {gesture.d}
        "my {kin_any} had just such {a} {T}," {B.said}, "and {haul.d} in spite of it"
        "at your age everyone has {a} {T}," {B.said} {adv_say}
        "go to the midwife," {B.said}, "and take {qty_goods} with you"
        "it comes of {chore.ing}," {B.said} {adv_say}
        "{a} {T} that aches is {a} {T} that lives," {B.said}
        "mine is worse," {B.said}, and showed it
        """,
        """
        {A} promised to {remedy_vp}, and forgot it before {meal}
        "{herb}!" {A.said}. "I would rather have the pain"
        they compared {ailment_n.pl} [until|till] {hour}
        {A} {gesture.d} and spoke no more about it
        "{price} for {a} bag of {herb}!" {A.said}. "I shall limp"
        {B} fetched {grease} from the {storage} all the same
        """,
    ),
    "food": Topic(
        "dish",
        """
        "what do you put in {a} {T}?" {A.asked}
        "there is {T} at {inn}," {A.said}, "with {herb}"
        "that was {a} {taste} {T}," {A.said}, "[if you will forgive me|to be honest|and you know it|I must say]"
        "[nobody|no one|not a soul] makes {a} {T} like {folk_a}," {A.said}
        """,
        """
        "{fruit.pl}, {spice}, and as little {wet} as I can," {B.said}
        "I cannot eat {T}," {B.said}. "It goes to my {body}"
        "{a} {T} wants {spice}," {B.said}, "and {small} hours by the fire"
        "you should taste the {T} at {far}," {B.said} {adv_say}
        """,
        """
        "[next time|from now on|after this] I shall boil {root.pl}," {A.said}
        {A} wrote it down in {reading_matter_a}
        the {dog} had the rest of the {T} {when_soft}
        """,
    ),
    "house": Topic(
        "fabric",
        """
        "the {T} will not last another {season}," {A.said}
        "did you hear the {T} in the night?" {A.asked}
        "who is to see to the {T}?" {A.asked} {adv_say}
        "there is {a} {leak} in the {T}," {A.said}, "and {a} {wild} in the {leak_place}"
        """,
        """
        "nail {a} plank of {wood} across it," {B.said}
        "it was {worn_hard} in my {kin_any}'s time," {B.said}, "and [here it is still|it has not moved|nobody \
            died of it]"
        "I shall look at the {T} after {meal}," {B.said}
        "the {T} is the {office}'s affair," {B.said}, and {gesture.d}
        """,
        """
        {A} put {a} {pot} under it and [said no more|hoped|changed the subject]
        "it has [waited|held|looked like that for] {count} years," {A.said}; "it can wait till {month_any}"
        {when_soft} the {T} {spoil.d}
        """,
    ),
    "occasion": Topic(
        "event",
        """
        "are you going to the {T}?" {A.asked}
        "I [have nothing|have nothing fit|need {clothes_a}|am too {mood_adj}] to wear for the {T}," {A.said}
        "last [time|year|{month_any}] there was [a quarrel|a scene|trouble] at the {T}," {A.said}, "about {matter}"
        "the {T} at {Q} was {degree} dull," {A.said} {adv_say}
        "will there be {drink} at the {T}?" {A.asked}
        "my {kin_any} broke {a} {limb} at the last {T}," {A.said}
        "we ought to {chore} before the {T}," {A.said}
        """,
        """
        "wear the {color} {garment}," {B.said}
        "I go for the {dish.pl}," {B.said}, "and to see who [comes|dances|quarrels] with the {office}"
        "not if {folk_a} plays the {instrument} again," {B.said}
        "if I can get the {root.pl} in first," {B.said}, "and if it is not {sky}"
        "I have [not missed|never enjoyed|seldom left] {a} {T} in {count} years," {B.said}
        """,
        """
        they [agreed to go together|would walk together|arranged to ride] [as far as|by way of|over] the {crossing}
        "bring {a} {dish}, then," {A.said}
        {A} thought of the {T} with {mood}, {comment}
        """,
    ),
    "family": Topic(
        "relation",
        """
        "my {T} writes that {talk_past}," {A.said}
        "how does your {T} like {far}?" {A.asked}
        "you are as {temper} as your {T}," {A.said} {adv_say}
        "is it your {T} who {chore.d} for the {office}?" {A.asked}
        "I dreamed of my {T}," {A.said}, "{pastime.ing} in {a} {color} {outer}"
        """,
        """
        "every {T} is {temper}," {B.said}, "and mine is {temper} besides"
        "my {T} and I have not [spoken|met|shared {a} {dish}] since {past_month}," {B.said}
        "the {T} you mean has {haul.en}," {B.said}
        "leave my {T} out of it," {B.said}, and {gesture.d}
        "better {a} {temper} {T} than {a} {temper} {kin_any}," {B.said}
        """,
        """
        {A} knew {a} {temper} {T} or two, and said so
        "give your {T} {qty_goods} from me," {A.said}
        after that the talk turned to {matter} and to {A.kin}
        """,
    ),
    "tools": Topic(
        "fieldtool",
        """
        "have you seen my {T}?" {A.asked}
        "lend me {a} {T}," {A.said}. "Mine is {worn_hard}"
        "who left {a} {T} {where}?" {A.asked} {adv_say}
        "this {T} was made at {far}," {A.said}, "and cost {price}"
        "with {a} {wood} handle," {A.said}, "that {T} would do"
        """,
        """
        "{folk_a} had it last," {B.said}, "to {chore} with"
        "try the {farm}," {B.said}, "behind the {machine}"
        "I have {count} of them, all {worn_hard}," {B.said}
        "you may have {a} {handtool} instead," {B.said} {adv_say}
        "take it to the smith, and take {price} along," {B.said}
        """,
        """
        {when_soft} the {T} turned up in the {storage}
        "I shall manage with {a} {handtool}," {A.said}
        {A} went off {whither} with {a} {worn} {fieldtool} over one shoulder
        """,
    ),
    "past": Topic(
        "homes",
        """
        "do you [remember|recall|ever think of] the old {T} {where}?" {A.asked}
        "I was [born|married|robbed|left] in that {T}," {A.said}, "in the year of the [great|second|terrible] \
            {weather_thing}"
        "who lives in the {T} now?" {A.asked}
        """,
        """
        "we {pastime.d} there as children," {B.said}
        "the {T} with {a} {tree} in front of it," {B.said} {adv_say}. "Yes"
        "{folk_a} has it," {B.said}, "and keeps {stock.pl} in the {room}"
        "it smelled of {smell}," {B.said}, "and the {fabric} leaked"
        """,
        """
        both {fuss.d}, and for a while neither spoke
        "{price} a year it was," {A.said}, "and {a} {fowl} at the {event}"
        it had been {a} {sky} {month_any}, that year, and {group} had {chore.en} together
        """,
    ),
}
