"""Adjectives, adverbs and verbs of the chronicle. Words are parted by white space; an underscore is a space."""

from __future__ import annotations

from collections.abc import Mapping

QUALITIES: Mapping[str, str] = {
    "temper": """patient stubborn cheerful gloomy thrifty generous timid bold shrewd honest vain modest
        quarrelsome gentle blunt talkative silent nervous proud lazy diligent curious suspicious
        forgetful punctual sentimental sarcastic kindly restless placid sharp-tongued soft-hearted
        hot-headed level-headed absent-minded fussy devout superstitious sceptical loyal fickle dreamy
        practical melancholy jovial prim boisterous bashful grumpy obliging meddlesome tactless witty
        earnest solemn frugal cautious reckless scrupulous moody tender-hearted headstrong methodical
        good-humoured short-tempered long-winded plain-spoken hospitable""",
    "worn": """old battered shabby neglected second-hand borrowed stained dusty discarded well-used grimy
        weather-beaten broken mended greasy""",
    "fine": """new handsome well-made elegant costly splendid plain neat foreign fashionable expensive sturdy
        serviceable trim delicate gleaming glossy ornate""",
    "worn_cloth": "patched threadbare moth-eaten frayed tattered darned mildewed faded crumpled outgrown",
    "worn_hard": """rusty cracked dented chipped crooked leaky splintered rickety wobbly warped bent lopsided
        buckled sagging creaking blistered peeling loose half-rotten""",
    "fine_cloth": """embroidered fringed quilted hand-stitched silk-lined brand-new spotless starched well-cut
        fur-trimmed""",
    "fine_hard": """polished painted carved gilded engraved varnished lacquered inlaid gleaming enamelled
        burnished brass-bound""",
    "size": """small large tiny enormous narrow broad tall squat heavy light long short thick slender round
        square shallow deep bulky stout lanky plump huge modest middling oversized stunted""",
    "color": """red brown grey green blue yellow black white crimson scarlet russet amber ochre purple violet
        tawny pale dark silver golden rust-coloured bottle-green slate-blue chestnut ivory dun piebald
        brindled speckled spotted striped dappled buff charcoal lilac olive pink mouse-coloured
        cream-coloured""",
    "coat": """red brown grey black white tawny dun piebald brindled speckled spotted dappled chestnut roan
        cream-coloured mouse-coloured sandy fawn-coloured shaggy sleek rough-haired bay""",
    "size_small": """small green tiny brown black striped glossy fat slender spotted lame speckled large furry pale
        long""",
    "taste": """salty sweet bitter sour peppery greasy tough tender stale burnt lukewarm smoky watery crisp
        creamy wholesome spicy bland rich buttery tart overcooked underdone lumpy tepid filling
        nourishing""",
    "land_adj": """stony muddy boggy steep overgrown windswept sunken sheltered barren fertile marshy sandy
        rutted lonely grassy reedy wooded mossy dusty flooded frozen frosty brambly nettle-grown
        chalky waterlogged hilly well-drained fallow trampled shaded open bracken-covered ferny
        gorse-covered flinty peaty""",
    "mood_adj": """angry pleased puzzled weary ashamed anxious grateful offended amused homesick hopeful
        disappointed indignant content relieved jealous sorry bewildered flustered thoughtful uneasy
        delighted hungry sleepy impatient tired speechless lonely dejected embarrassed triumphant wary
        sulky furious astonished resigned tearful smug apologetic mortified exhausted forlorn exultant
        sheepish""",
    "sky_dry": "clear bright cloudless blue pale still mild dry crisp hazy mellow calm fair dazzling sunny",
    "sky_wet": """grey leaden low dripping wet sodden drizzly dull overcast lowering heavy murky raw clammy
        gloomy dismal""",
    "sky_cold": """frosty bitter icy biting freezing hard keen white piercing bleak raw numbing iron-cold
        snow-laden""",
    "sky_hot": """sultry hot stifling scorching airless close baking dusty heavy breathless sweltering parched
        blazing""",
    "sky_wild": "blustery stormy gusty wild rough thunderous squally tempestuous boisterous ragged howling",
    "sound_adj": """faint sudden dull sharp muffled hollow distant steady harsh shrill low piercing regular eerie
        tinny""",
    "voice_adj": """low hoarse loud gruff gentle trembling shrill weary cheerful flat sour mild stern reedy
        booming husky quavering hushed level solemn""",
    "flow_adj": """swollen brown sluggish shallow swift muddy clear silent frothy choked rapid low high glassy
        turbid""",
    "opinion_adj": """sensible foolish wicked harmless doubtful absurd risky wise unfair generous outrageous
        ridiculous prudent shameful reasonable clever peculiar hopeless pointless tiresome disgraceful
        unlucky hasty ingenious premature insulting unnecessary uncharitable brilliant lamentable""",
    "age_adj": """old young elderly middle-aged aged youthful white-haired grey-bearded newly_wed retired
        half-grown""",
    "build_adj": """lean stout thickset wiry freckled bald red-haired one-eyed lame bow-legged broad-shouldered
        pale sunburnt long-legged hollow-cheeked round-faced bearded left-handed deaf near-sighted
        snub-nosed gap-toothed tall gaunt stooping clean-shaven curly-haired bony dimpled
        straight-backed""",
    "fact_adj": """true false likely exaggerated unproved certain plain obvious well-known disputed uncertain
        half-true unfounded undeniable old_news""",
    "weight_adj": "considerable moderate trifling tolerable handsome miserable decent paltry fair respectable",
}

ADVERBS: Mapping[str, str] = {
    "adv": """carefully slowly quickly quietly patiently clumsily neatly roughly gently firmly calmly
        eagerly wearily cheerfully grimly doggedly absent-mindedly thoroughly hastily solemnly
        grudgingly willingly reluctantly steadily awkwardly skilfully carelessly methodically
        stubbornly gladly tenderly briskly lazily soberly expertly nervously gingerly deliberately
        proudly humbly impatiently obediently silently single-handedly good-naturedly resolutely
        painstakingly unhurriedly conscientiously furtively vigorously""",
    "adv_say": """quietly drily gravely sharply mildly bitterly gently sourly cheerfully bluntly wearily kindly
        coldly firmly softly crossly stiffly shyly thoughtfully indignantly innocently sadly hopefully
        loudly politely tartly hoarsely meekly flatly earnestly carelessly apologetically gloomily
        placidly""",
    "adv_often": """often seldom usually rarely sometimes always never generally occasionally invariably regularly
        frequently""",
    "degree": """rather quite very unusually remarkably fairly somewhat suspiciously uncommonly exceedingly
        surprisingly""",
    "doubtless": """perhaps probably certainly naturally presumably evidently apparently unluckily luckily
        fortunately strangely understandably oddly inevitably mercifully regrettably undoubtedly""",
}

VERBS: Mapping[str, str] = {
    "motion": """walk trudge hurry limp stroll wander ride drive climb creep run stride plod saunter tramp
        hasten scramble shuffle amble stumble wade trot march stalk hobble row stagger ramble scurry
        dawdle""",
    "fuss": """grumble sigh cough laugh yawn shiver frown nod smile sniff blush hesitate shrug tremble
        chuckle mutter whistle hum fidget scowl sneeze stammer wince pause listen blink swallow gasp
        stretch relent""",
    "mend": """mend repair patch oil scrub polish paint sharpen clean straighten replace rebuild strengthen
        tighten sand varnish rinse scour dust adjust restore fasten stitch glue rivet solder inspect
        measure test grease whitewash examine dismantle refit""",
    "spoil": """crack rot rust burst collapse warp splinter crumble sag leak jam buckle break snap loosen
        wear_out give_way come_apart fall_in""",
    "accuse": """cheat insult deceive overcharge ignore slander mock trick threaten contradict humiliate
        interrupt undercut disappoint provoke underestimate neglect misquote belittle scold shame
        cross""",
    "kind_act": """help thank praise forgive comfort feed shelter visit nurse encourage defend teach warn advise
        trust welcome reward console pardon humour escort congratulate""",
    "ponder": """suspect believe suppose fear hope know imagine guess doubt maintain feel conclude decide
        realise remember notice hear learn discover understand swear""",
    "bird_sound": "call sing chatter whistle scold cry croak clamour pipe twitter squabble mutter shriek",
    "bird_act": """circle nest settle roost gather perch flap quarrel glide hover feed skim wheel dive preen
        strut hop swoop rise scatter""",
    "grow": """bloom flower spread ripen wither fade sprout droop thrive seed flourish wilt open straggle
        climb""",
    "shine": "glow gleam glitter shine flicker glimmer sparkle smoulder burn twinkle shimmer",
    "crowd_act": """grumble laugh whisper quarrel argue gossip cheer complain chatter stare murmur bargain joke
        disagree wait""",
    "roam": "trot hurry limp stroll wander creep run trudge amble saunter scramble plod dash scurry prowl",
    "dog_act": "bark growl whine yawn howl sneeze snore pant stretch scratch sulk snarl whimper wag",
    "cook": """boil simmer bake roast fry stew steam toast smoke pickle salt baste stir season garnish carve
        serve""",
    "beg": "ask beg urge persuade order tell invite beseech implore command instruct remind advise forbid",
    "state": """say answer reply mutter remark observe declare grumble whisper announce insist admit explain
        add complain protest murmur growl concede warn suggest boast joke confess repeat object put_in
        snap grunt venture retort drawl mumble""",
    "sound_verb": """creak rattle hum drip groan crackle rustle squeak gurgle clank thump sigh hiss rumble clatter
        whistle tick sway tremble shudder""",
    "enquire": "ask enquire demand wonder",
}

# base, past and, where it differs, past participle
IRREGULAR_VERBS = """
bend bent;bind bound;bite bit bitten;blow blew blown;break broke broken;bring brought;build built;burst burst;buy bought
catch caught;choose chose chosen;cling clung;come came come;creep crept;cut cut;deal dealt;dig dug;do did done
draw drew drawn;drink drank drunk;drive drove driven;eat ate eaten;fall fell fallen;feed fed;feel felt;fight fought
find found;fling flung;fly flew flown;forbid forbade forbidden;forget forgot forgotten;forgive forgave forgiven;get got
give gave given;go went gone;grind ground;grow grew grown;hang hung;have had;hear heard;hide hid hidden;hold held
keep kept;kneel knelt;know knew known;lay laid;lead led;leave left;lend lent;let let;light lit;lose lost;make made
mean meant;meet met;mislay mislaid;mow mowed mown;pay paid;put put;read read;rebuild rebuilt;ride rode ridden
refit refitted;ring rang rung;rise rose risen;run ran run;sand sanded;saw sawed sawn;say said;see saw seen;sell sold
send sent;set set;sew sewed sewn;shake shook shaken;shear sheared shorn;shed shed;shine shone;shoe shod;shoot shot
show showed shown;shut shut;sing sang sung;sit sat;sleep slept;slide slid;sow sowed sown;speak spoke spoken;spend spent
spin spun;spread spread;stand stood;steal stole stolen;stick stuck;stride strode stridden;strike struck;string strung
swear swore sworn;sweep swept;swim swam swum;swing swung;take took taken;teach taught;tear tore torn;tell told
think thought;throw threw thrown;understand understood;undercut undercut;undo undid undone;wake woke woken
wear wore worn;weave wove woven;weep wept;win won;wind wound;wring wrung;write wrote written;overhear overheard
tread trod trodden;lie lay lain;sit sat;hew hewed hewn;beseech beseeched;repay repaid;withdraw withdrew withdrawn
"""

# verbs of more than one syllable that double their last letter
DOUBLING = "quarrel travel marvel admit forget regret prefer refer permit commit begin transfer"
