"""Verb phrases and building blocks of the chronicle's grammar, as templates.

``{table}`` draws from a table or rule, ``|`` parts alternatives, ``{his}`` and its like follow the subject,
``{a}`` becomes "a" or "an". In a verb phrase the first word and every ``*word`` are inflected.
"""

from __future__ import annotations

from collections.abc import Mapping

VERB_PHRASES: Mapping[str, str] = {
    "chore": """
        scrub the {woodware} with {grease}
        patch {his} {color} {outer}
        darn {a} {color} {knitwear}
        sweep the {room} and *shake out the {linens}
        sort the {fruit.pl} into {drybox.pl}
        polish the {metal} {ornament}
        mend the {opening} of the {farm}
        carry {small} {drybox.pl} of {dry} to the {room}
        scour {a} {worn} {pot}
        rub {grease} into the {woodware}
        hang {herb} from the {hanging} to dry
        whitewash the {farm}
        fill the {vessel.pl} at the {water}
        chop {wood} for the {room} fire
        drive {small} nails into the {worn_hard} {woodware}
        air the {linens.pl} on the {perch}
        stop {a} {leak} in the {fabric} with {filler_stuff}
        boil {root.pl} in {a} {worn} {pot}
        wring out the {linens.pl}
        clean the {room} {opening.pl}
        count the {linens.pl} in the {storage}
        sew {a} {color} patch on {a} {cloth} {clothes}
        bake {small} {dish.pl} for the {event}
        salt {a} {drybox} of {fish.pl}
        feed the {fowl.pl} and *shut up the {stock.pl}
        oil the {opening} hinges
        bottle {fruit.pl} in {wet_drink}
        set mousetraps behind the {woodware}
        trim the lamps in the {room}
        turn out the {storage} in the {room}
        polish the {woodware} until it shone
        unpick the hem of {a} {clothes}
        fold the {linens.pl} into the {storage}
        weigh out {dry} by the {drybox}
        soak the {fruit.pl} in {drink}
        plait onions in the {farm}
        black the {room} grate
        chase {a} {fowl} out of the {room}
        pluck {a} {fowl} for the {event}
        shell peas into {a} {pot}
        sharpen the {handtool} on a wet stone
        mix {a} {pot} of {wet} and {dry}""",
    "spring_work": """
        plough the {land_adj} {fieldland}
        sow {grain} in the {fieldland}
        harrow the {fieldland} below the {farm}
        plant {root.pl} beside the {mark}
        prune the {fruit} bushes
        lay the hedge along the {way}
        dig over the {land_adj} {fieldland}
        clear the {fieldland} of stones
        turn the {stock.pl} out to the {fieldland}
        graft {a} {tree} by the {homes}
        dock the lambs in the {farm}
        roll the {fieldland} after the {weather_thing}
        thin the {root.pl}
        set {root.pl} in rows
        cart {muck} to the {fieldland}
        stake the peas by the {farm}""",
    "summer_work": """
        mow the {land_adj} {fieldland}
        turn the {grain_heap.pl} in the {fieldland}
        shear the sheep behind the {farm}
        pick {fruit.pl} before {meal}
        hoe between the {root.pl}
        cart hay to the {farm}
        pull {flower.pl} out of the {grain}
        water the {crop.pl} from the {water}
        wash the sheep in the {water}
        scare {bird.pl} off the {grain}
        rake the {fieldland} by moonlight
        thatch the {grain_heap.pl}
        cut peat on the {waste}
        take a [late|second|small|great] swarm of bees from the {tree}
        scythe the {land_adj} {fieldland}""",
    "autumn_work": """
        reap the {grain} in the {fieldland}
        bind {grain} into sheaves
        thresh {grain} in the {farm}
        lift {root.pl} from the {fieldland}
        press {fruit.pl} for {wet_drink}
        shake the {fruit} trees
        store {root.pl} in the {room}
        glean {grain} after the carts
        drive the {stock.pl} down from the {waste}
        burn the stubble on the {fieldland}
        gather {wildfruit.pl} along the {way}
        smoke {fish.pl} in the smokehouse
        winnow {grain} on the {farm} floor
        rick the {grain} beside the {farm}
        cut withies along the {water}""",
    "winter_work": """
        fodder the {stock.pl} in the {farm}
        break the ice on the {water}
        fell {a} {tree} by the {waste}
        saw {wood} for the {room} fire
        dig {a} {stock} out of the snow
        cut reeds by the {water}
        spread {muck} on the {land_adj} {fieldland}
        mend {fieldtool.pl} by the {room} fire
        lag the {farm} pump with straw
        carry hay to the {farm} through the {weather_thing}
        clean the ditch beside the {way}
        shovel a path to the {farm}
        set snares along the {waste}
        sharpen every {fieldtool} in the {farm}
        weave {drybox.pl} out of {tree}""",
    "pastime": """
        play {game} with {folk_a}
        whittle {a} {animal} out of {wood}
        read {reading_matter_a} aloud
        practise the {instrument}
        feed crumbs to the {songbird.pl}
        fish for {fish.pl} in the {water}
        watch {bird.pl} from the {opening}
        sit on the {perch} and *smoke
        tell the old tale of the {animal} and the {office}
        press {flower.pl} between the pages of {reading_matter_a}
        teach {a} {songbird} to whistle
        sketch the {building} in {charcoal_n}
        hum over {his} {craft_n}
        skim stones across the {water}
        knit {a} {color} {knitwear}
        argue about {matter} with {folk_a}
        sleep behind the {grain_heap}
        write verses about {a} {wild}
        collect {insect.pl} in {a} {vessel}
        pick {flower.pl} by the {water}
        tune {a} {instrument} badly
        walk round the {fieldland} before {meal}
        bowl {a} {hoop_n} down the {way}
        carve {his} initials on the {perch}
        dream over {a} {vessel} of {drink}""",
    "mischief": """
        tie {a} {stock} to the {public} door
        let the {fowl.pl} into the {public}
        put {a} {wild} in the {office}'s {headgear}
        hide the {folk}'s {handtool}
        paint the {public} door {color}
        pour {drink} into the {public} well
        draw the {office} on the {opening} in {charcoal_n}
        steal {fruit.pl} out of the {farm}
        fill the {office}'s {footwear.pl} with {insect.pl}
        ride {a} {stock} through the {public}
        ring the {public} bell at {hour}
        swap the labels on the {vessel.pl}
        slide down the {farm} roof on {a} {kitchenware}
        grease the {perch} with {grease}
        drop {a} {fish} down the {public} chimney""",
    "errand": """
        buy {a} {fine} {handtool}
        sell {qty_goods}
        collect {a} {drybox} of {dry}
        fetch {qty_goods}
        deliver {a} {treasure} to {folk_a}
        see the {office} about the {matter}
        have {a} {worn_hard} {machine} mended
        borrow {a} {fieldtool}
        ask after {a} {kin_any}
        look at {a} {coat} {mount}
        sign {reading_matter_a}
        have {a} tooth drawn
        settle the {matter}
        inspect {a} {worn} {vehicle}
        return {a} {treasure}
        consult the {office} over {a} {trouble}
        bargain for {small} {drybox.pl} of {dry}
        visit {a} {age_adj} {kin_any}
        hire {folk_a} for the {grain} harvest
        enter {a} {stock} for the {show}""",
    "remedy_vp": """
        rub the {body} with {grease}
        drink {drink} with {herb} in it
        wrap the {body} in {cloth}
        lie still under {small} {blankets}
        eat nothing but {taste} {dish.pl}
        breathe the steam of {herb}
        wear {a} bag of {herb} round the neck
        sleep with {a} {handtool} under the mattress
        hold {a} hot {root} to the {body}
        bathe the {body} in {drink}
        keep away from {dish.pl}
        take {a} spoonful of {wet} at {hour}""",
    "gesture": """
        scratch {his} {body}
        look down at {his} {footwear.pl}
        wipe {his} hands on {a} {cloth} apron
        fold {his} arms
        turn {a} {treasure} over in {his} fingers
        pull {his} {headgear} straight
        stare out at the {tree.pl}
        set down the {pot}
        poke the {room} fire
        pour {himself} more {drink}
        rub {his} {body} with one hand
        lean on {his} {fieldtool}
        hang up {his} {outer}
        tap the {woodware} with {a} {handtool}
        shake the {weather_wet_n} from {his} {headgear}
        go back to {his} {craft_n}
        take {a} bite of {dish}
        walk to the {opening} and back
        close the {storage}
        pick a thread from {his} {outer}
        blow on {his} fingers
        push {his} {headgear} back
        look round for {his} {handtool}""",
    "kindness": """
        leave {qty_goods} on the {perch}
        mind the {stock.pl} until {hour}
        lend {B.him} {a} {fine} {handtool}
        send over {a} {taste} {dish}
        chop the {wood} unasked
        say nothing about the {trouble}
        pay for the {drink}
        mend the {opening} without charge
        walk {B.him} home past the {land}
        bring {herb} for the {ailment_n}
        offer {a} {fine_cloth} {clothes}
        sit up with {B.him} until {hour}""",
    "haul": """
        find {a} {treasure} in {a} {worn} {storage}
        dig up {a} {metal} {treasure} near the {land}
        inherit {a} {fine} {woodware} from {a} {kin_any}
        win {a} {stock} at the {event}
        lose {a} {treasure} in the {water}
        sell {a} {mount} for {price}
        buy {a} {worn} {vehicle} from {folk_a}
        sign away {a} {land_adj} {fieldland}
        catch {a} {fish} as long as {a} {fieldtool}
        break {a} {limb} on the {perch}
        pawn {a} {treasure} in {his} {kin_any}'s name
        see {a} white {wild} by the {land}
        owe {folk_a} {price}
        quarrel with {folk_a} about {a} {handtool}
        let {a} {stock} loose in the {public}
        move the boundary stone by the {land}
        water the {drink}
        promise {his} {kin_any} {a} {fine_cloth} {clothes}""",
}

# rules that make phrases: alternatives are parted by |
RULES: Mapping[str, str] = {
    "small": "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a dozen|fifteen|a score of|several|a few",
    "count": """
        two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|sixteen|nineteen|twenty|thirty|forty""",
    "ord": "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|last",
    "hour": """
        noon|midnight|dawn|dusk|daybreak|sunset|cockcrow|six o'clock|ten o'clock|four in the morning|three in the
        afternoon|half past eight|nightfall|sunrise""",
    "meal": "breakfast|dinner|supper|the midday meal|tea|lunch",
    "coin": "pence|shillings|crowns|farthings|florins|groats|sovereigns|guineas",
    "price": """
        {count} {coin}|{count} {coin}|{a} {weight_adj} sum|{count} {coin} and {a} {fowl}|half a crown|{count}
        {coin}|{count} {coin}|{count} {coin}""",
    "show": "cattle show|autumn fair|spring fair|ploughing match|county show|midsummer fair|horse fair",
    "animal": "{wild}|{bird}|{stock}|{insect}|{fish}|{mount}|{fowl}",
    "animal_pl": "{wild.pl}|{bird.pl}|{insect.pl}|{stock.pl}|{mount.pl}",
    "animal_a": """
        {a} {coat} {wild}|{a} {size} {stock}|{a} {coat} {mount}|{small} {bird.pl}|{a} {mood_adj} {dog}|{a} lame
        {mount}|{small} {fowl.pl}|{a} {coat} {dog}""",
    "plant": "{flower}|{tree}|{herbplant}|{crop}",
    "plant.pl": "{flower.pl}|{flower.pl}|{herbplant}s",
    "herbplant": "teasel|nettle|dock|thistle|fern|bracken frond|reed|bulrush|burdock|rush",
    "kin_any": "{kinsman}|{kinswoman}|{kinswoman}|{kinsman}|{folk}",
    "kin_any.pl": "{kinsman.pl}|{kinswoman.pl}|{kinswoman.pl}|{kinsman.pl}",
    "relation": "{kinsman}|{kinswoman}",
    "limb": "wrist|ankle|thumb|rib|tooth|elbow|toe|collarbone|knee|finger",
    "blankets": "blankets|quilts|eiderdowns|sheepskins|pillows|rugs",
    "wildfruit.pl": """
        blackberries|sloes|rosehips|hazelnuts|bilberries|crab apples|elderberries|chestnuts|mushrooms|acorns|haws""",
    "wet_drink": "cider|brandy|vinegar|perry|mead|gin|syrup|honey|rum|sherry",
    "charcoal_n": "charcoal|chalk|red chalk|soot|ink|pencil|whitewash|tar",
    "weather_wet_n": "rain|snow|sleet|drizzle|hail|dust|chaff|straw",
    "preserve": """
        {fruit} jam|pickled {root.pl}|{herb} jelly|{fruit} jelly|potted {fish}|{fruit} cordial|{fruit} chutney""",
    "folk_a": """
        {a} {folk}|{a} {age_adj} {folk}|{a} {build_adj} {folk}|{a} {temper} {folk}|{a} {folk} from {far}|{a}
        {folk}""",
    "reading_matter_a": """
        {a} {reading_matter}|{a} {worn} {reading_matter}|the {office}'s {reading_matter}|{a} {reading_matter}
        about {matter}""",
    "craft_n": """
        mending|baking|accounts|sewing|digging|chopping|weeding|sorting|packing|washing|spinning|whittling|knitting|peeling|stitching|sweeping""",
    "hoop_n": "hoop|barrel ring|cartwheel|cheese|turnip|old tyre|bobbin|marrow",
    "adj_thing": "{worn}|{fine}|{color}|{size}",
    "thing": """
        {handtool}|{fieldtool}|{vessel}|{woodware}|{clothes}|{treasure}|{instrument}|{kitchenware}|{machine}|{drybox}""",
    "clothes_a": """
        {a} {worn_cloth} {garment}|{a} {fine_cloth} {garment}|{a} {color} {cloth} {garment}|{a} {cloth}
        {garment}|{a} {color} {garment}""",
    "tool_a": """
        {a} {worn_hard} {tool}|{a} {metal} {handtool}|{a} {fine} {handtool}|{a} {wood} {fieldtool}|{a} {worn}
        {fieldtool}|{a} {size} {handtool}""",
    "wood_a": """
        {a} {wood} {woodware}|{a} {fine_hard} {woodware}|{a} {worn_hard} {woodware}|{a} {fine_hard} {wood}
        {woodware}|{a} {size} {woodware}""",
    "treasure_a": """
        {a} {metal} {treasure}|{a} {fine} {treasure}|{a} {worn} {treasure}|{a} {fine_hard} {treasure}|{a}
        {treasure} of {metal}""",
    "thing_a": """
        {clothes_a}|{tool_a}|{wood_a}|{treasure_a}|{a} {worn} {instrument}|{a} {fine} {kitchenware}|{a} {size}
        {vessel}""",
    "qty_goods": """
        {a} {drybox} of {dry}|{small} {drybox.pl} of {dry}|{a} {drybox} of {crop.pl}|{a} {coat} {stock}|{a} bundle
        of {herb}|{small} {fowl.pl}|{a} {vessel} of {drink}|{a} length of {color} {cloth}|a string of
        {fish.pl}|{thing_a}|{small} {vessel.pl} of {wet}|{a} {drybox} of {fish.pl}|half a {drybox} of
        {grain}|{small} {handtool.pl}|{small} pots of {preserve}|a coil of {textile}|{small} hanks of {color}
        yarn|{a} {drybox} of {hardware}|{a} {pot} of {preserve}|{small} {drybox.pl} of {root.pl}""",
    "goods_list": """
        {qty_goods}, {qty_goods} and {qty_goods}|{qty_goods} and {qty_goods}|{qty_goods}, {qty_goods}, {qty_goods}
        and {thing_a}|{qty_goods}, {qty_goods}, and, [under a cloth|at the bottom|wrapped in {cloth}|last of all],
        {thing_a}|{qty_goods}, {qty_goods}, {small} {vessel.pl} of {drink}, {qty_goods} and
        {treasure_a}""",
    "where": """
        behind the {building}|beside the {mark}|by the {land_adj} {land}|under the {tree.pl}|near the
        {building}|in the {room}|along the {way}|beyond the {building}|{by_street} by the {building}|[on the
        steps|at the door|in front|under the windows|in the porch] of the {public}|[at the end|at the top|at the
        bottom|on the sunny side] of the {street}|between the {building} and the {land}|by {a} {worn_hard}
        {machine}|[in {a} corner|at the back|by the window] of the {room}|by the {crossing}|outside {inn}|[on the
        banks|at the bend|on the far bank|by the shallows] of the {river}|above the {water}|[in the lee|in the
        shadow|on the far side|at the back] of the {building}|halfway along the {way}|[at the edge|on the
        fringe|on the far side|this side] of the {waste}|[in the middle|at the top|at the bottom|on the far side]
        of the {fieldland}""",
    "whither": """
        across the {fieldland}|along the {way}|down to the {building}|up to the {waste}|over the {crossing}|past
        the {building}|through the {tree.pl}|round by the {mark}|back to the {building}|out to the {farm}|towards
        the {river}|along the {water}|into the {room}|as far as the {crossing}|to the {public} and back|down the
        {way} towards {far}""",
    "when_soft": """
        that evening|before {meal}|after {meal}|towards {hour}|at {hour}|that night|the next morning|by {hour}|a
        day later|the same afternoon|some days later|within the week|not long after {meal}|later, in the {room}|on
        the way home|in the middle of {meal}|by the end of the week|presently|all that afternoon|{count} days
        later|before the {event}""",
    "when_start": """
        on the {ord} day of the {event}|late in {month}|early in {month}|in the {week} week of {month}|a little
        before {hour}|on {a} {sky} morning|one {sky} evening|{count} days before the {event}|at the {event}|on the
        morning of the {event}|the day after the {event}|when the {bird.pl} had settled {where}|by the time the
        {root.pl} were in|as the {public} clock struck {strike}|between {meal} and {hour}|while the {dish.pl} were
        still warm|that {season}|towards the end of {month}|on the eve of the {event}|while {folk_a} {pastime.d}""",
    "week": "first|second|third|last",
    "strike": "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|one",
    "manner": """
        {adv}|{adv}|{adv}|with {a} {look_n}|without {a} word|with {degree} little {virtue}|as {adv} as {folk_a}|in
        {a} {color} {outer}|with more {virtue} than {virtue}|with every sign of {mood}|and {fuss.d} all the
        while|with {a} {dish} in one hand|for the {ord} time that {season}|in spite of the {weather_thing}|out of
        {fault}|not {adv}, but well enough|with {his} {garment} buttoned to the {chin}|and, being {temper}, said
        nothing of it|to the great {mood} of {folk_a}|which was not like {him}""",
    "chin": "chin|neck|throat|nose|ears",
    "group": """
        the neighbours|the children|the {folk.pl}|two {folk.pl}|the {office} and {folk_a}|the whole family|half
        the village|the {folk.pl} from {far}|{small} {folk.pl}|both families|the older women|the
        [men|women|hands|apprentices] at the {works}|the {kinswoman.pl}|the {folk.pl} and the {folk.pl}""",
    "cause": """
        the {fabric} of the {building} had {spoil.en}|there was {a} {trouble} over the {matter}|the {grain} had
        {harvest_state}|{group} had {chore.en} badly|the {river} was {flow_adj}|nobody had {chore.en}|the
        {stock.pl} had got into the {crop.pl}|{a} {wild} had been at the {fowl.pl}|the {weather_thing} had come
        early|{folk_a} wanted {price} for {thing_a}|the {office} would not hear of it|the {stuff} in the {room}
        had run out|{a} {stock} had {beast_fate}|the {drybox} of {dry} was empty|the {crossing} was shut|every
        {vehicle} was out|the {dish} was {taste} again|it was the week of the {event}|the {mount} had
        {beast_fate}|the {root.pl} had {harvest_state}|the {stuff} from {far} had not come""",
    "harvest_state": """
        come up thin|failed|rotted|done well|been laid flat|been sold already|ripened late|gone mouldy|been beaten
        down by the {weather_thing}|been eaten by {insect.pl}|fetched {price} at {far}""",
    "beast_fate": """
        gone lame|slipped its rope|kicked the {office}|eaten {a} {garment}|swallowed {a} {treasure}|followed
        {folk_a} home|got its head stuck in {a} {vessel}|sat down in the {water}|wandered into the {public}|fallen
        into the {water}|been sold to {folk_a}|bitten {folk_a}""",
    "state_of": """
        {degree} {worn}|{degree} {fine}|past mending|in good order|none of the cleanest|{degree} {fine} for its
        age|the colour of {stuff}|cold to the touch|warm from the fire|covered with {filler_stuff}|no longer what
        it was|propped up with {a} {fieldtool}|held together with {textile}""",
    "said_of_people": """
        {degree} {temper}|{temper} and {degree} {temper}|as {temper} as any {folk}|{temper} in company and
        {temper} at home|too {temper} for {a} {office}|never {temper}, but always {temper}""",
    "proverb": """
        {a} {sky} {month_any} makes {a} full {farm}|{virtue} mends no {fieldtool.pl}|the {animal} that waits eats
        {taste} {fruit.pl}|{a} {worn_hard} {vessel} holds as much {drink} as {a} {fine_hard} one|{fault} is {a}
        {taste} {dish}|no {office} ever {v_he}{chore.d}|where the {bird} sings, the {grain} grows|{a} {temper}
        {folk} buys {a} {temper} {mount}|lend {a} {fieldtool} and lose {a} {kin_any}|better {a} {taste} {dish}
        than {a} {fine} {clothes}|{weather_thing} in {month_any} fills the {farm}|count the {stock.pl} after the
        {event}, not before|{a} {bird} on the {perch} means {weather_thing}|one {kin_any} is company, two are {a}
        {trouble}|{a} {temper} {folk} sleeps till {hour}|never trust {a} {coat} {mount} or {a} {temper}
        {office}|{virtue} in {month_any} is {virtue} all year""",
    "gossip": """
        {folk_a} had been seen {pastime.ing} {where}|the {office} meant to {v_he}{haul}|the {folk} at {far} was
        going to marry {a} {kin_any}|{a} {stock} with two heads had been born {where}|{folk_a} had {haul.en}|the
        {building} was to be pulled down|the {office} had not paid for {qty_goods}|the {drink} at {inn} was
        watered|there was {a} {treasure} buried {where}|{group} had {mischief.en}|the {matter} would be
        doubled|{small} {stock.pl} had died at {far}|the {office} could not read|{a} ghost had been heard
        {where}|the new {office} came from {far} and was {temper}|the {office} and {folk_a} were not on speaking
        terms""",
    "comment": """
        which {adv_often} helps|or so {folk_a} maintained|whatever {folk_a} [might say|had heard|thought of
        it]|which [was thought|many called|some found|they all found] {opinion_adj}|and not before time|as
        [often|usually|sometimes] happens in {month}|to the {mood} of {folk_a}|much to the {mood} of {group}|and
        {group} were
        {mood_adj}|as though [nothing had happened|it were {month_any}|nobody had noticed|that settled it]|which
        surprised [nobody but|not even|only] {folk_a}|and {folk_a} [said as much|grumbled about it|told the story]
        at {inn}|though {folk_a} called it {opinion_adj}|which made {group} {mood_adj}""",
    "talk": """
        there is {a} {leak} in the {fabric}|nobody has {chore.en} since {past_month}|the {office} wants {price}
        for the {matter}|{a} {mount} is worth more than {a} {treasure}|that {worn_hard} {machine} will not last
        another {season}|there will be {weather_thing} before {hour}|{a} {folk} should not {errand}|it was never
        {opinion_adj} to {haul}|the {building} wants {a} new {opening}|I cannot {chore} with {a} {worn_hard}
        {handtool}|I went to {errand} and came home with {thing_a}|my {kin_any} {adv_often} said that {proverb}|we
        shall have {taste} {dish} again|I have {small} {stock.pl} and half a {farm}|you still owe me {price}|the
        {bird.pl} are {bird_act.ing} lower than they did in {past_month}|they say at {far} that
        {gossip}|{proverb}|every {folk} in {far} has {a} {fine} {clothes}|I would sooner {chore} than {pastime}|my
        {body} aches whenever the {bird.pl} {bird_act}|the {office} has {haul.en}, and {v_he}says it was {mood}|I
        shall {errand} before the {event}|I {adv_often} {chore} after {meal}""",
    "question": """
        who {chore.d} last|where is the {metal} {handtool}|what is {a} {stock} worth in {month}|did you ever
        {haul}|how many {drybox.pl} of {dry} are left|why must we always {chore}|have you {chore.en} yet|have we
        any {stuff} in the {room}|whose {stock} is that {where}|what does the {office} want with {thing_a}|would
        you take {price} for it|who told you that {gossip}|what did you pay for the {clothes}|shall I {chore} or
        {chore}|is it true that {gossip}|do you call that {thing_a}|when did the {bird.pl} leave|what if the
        {river} rises|who is going to {chore}|can you spare {qty_goods}""",
    "short": """
        not in {month}|{price}, and no less|ask the {office}|so they say at {far}|mind the {vessel}|it was {a}
        {animal}|only {a} {trouble}|leave the {thing} alone|wait for the {event}|a likely {notion}|never again in
        {a} {vehicle}|more {drink}, please|the {dog} did it|that is my {garment}|not before {meal}|try {herb}|I
        blame the {office}|over by the {mark}|so much for {virtue}|in this {weather_thing}|tell that to the
        {office}|after the {event}, perhaps|as you like|with that {body} of yours""",
}
