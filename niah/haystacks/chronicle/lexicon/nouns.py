"""Nouns of the chronicle by what they stand for. Words are parted by white space; an underscore is a space."""

from __future__ import annotations

from collections.abc import Mapping

# things that can be counted: singular here, plural by rule or from IRREGULAR_PLURALS
NOUNS: Mapping[str, str] = {
    "tree": """oak ash elm alder willow hazel beech birch rowan hawthorn blackthorn yew holly larch pine
        poplar aspen chestnut sycamore hornbeam maple elder juniper walnut medlar quince damson
        pear_tree apple_tree cherry_tree mulberry spruce fir linden plum_tree osier crab_apple sallow
        whitebeam bullace spindle_tree""",
    "flower": """primrose cowslip foxglove bluebell celandine campion marigold violet daisy buttercup poppy
        cornflower teasel harebell honeysuckle periwinkle snowdrop crocus daffodil columbine hollyhock
        lupin wallflower snapdragon peony iris lily thistle dandelion nettle dock burdock vetch mallow
        bramble dog_rose forget-me-not oxlip bindweed speedwell orchid anemone pansy willowherb
        toadflax kingcup eyebright""",
    "bird": """@songbird rook magpie heron lapwing curlew swallow swift plover snipe woodcock partridge
        pheasant quail kestrel buzzard sparrowhawk owl nightjar cuckoo dove wood_pigeon raven crow
        swan mallard teal moorhen coot dipper wagtail kingfisher nuthatch treecreeper fieldfare
        redwing gull cormorant bittern martin goose""",
    "beast": "@stock @mount @fowl @dog tabby",
    "wild": """fox badger hare rabbit stoat weasel otter hedgehog mole vole shrew squirrel polecat dormouse
        bat toad frog newt adder grass_snake lizard rat deer roebuck hind fawn marten""",
    "insect": """bee wasp hornet beetle moth butterfly dragonfly gnat midge ant spider cricket grasshopper
        ladybird earwig woodlouse snail slug bumblebee mayfly caterpillar horsefly cockchafer
        glow-worm""",
    "fish": """trout perch pike eel carp tench roach grayling bream minnow loach dace chub lamprey barbel
        gudgeon""",
    "tool": "@handtool @fieldtool lantern compass balance bodkin shuttle bobbin thimble pulley trestle",
    "container": "@drybox @vessel @pot pouch purse caddy canister casket parcel trough",
    "outer": "coat cloak apron smock jacket overcoat tunic cape shirt jerkin waistcoat greatcoat shawl",
    "garment": "@outer scarf muffler hat hood belt sash neckerchief cap collar hatband mitten",
    "furniture": "@woodware @linens @ornament",
    "part": "@hanging @opening @perch @fabric",
    "building": "@farm @works @public @homes",
    "land": "@fieldland @water @waste @mark",
    "room": """kitchen parlour pantry larder scullery attic cellar bedroom nursery study hall passage
        workshop storeroom buttery loft cloakroom dining_room laundry schoolroom counting-house
        taproom back_room""",
    "vehicle": """cart wagon barrow sledge dray gig trap carriage coach ferry punt barge rowing_boat raft
        haywain tumbril""",
    "treasure": """ring brooch locket thimble snuffbox pocket_watch penknife teaspoon medal coin_purse necklace
        bracelet buckle hairpin comb fan flute fiddle_bow prayer_book almanac recipe_book ledger map
        letter receipt deed portrait sketchbook inkwell quill seal walking_stick spectacles_case
        music_box pincushion silver_spoon pewter_mug christening_cup button_hook corkscrew monocle
        magnifying_glass barometer""",
    "instrument": """fiddle flute drum whistle concertina harp tambourine bagpipe trumpet bugle viol dulcimer lute
        zither cornet""",
    "reading_matter": """letter notice ledger almanac pamphlet hymnbook register petition contract receipt newspaper
        ballad sermon catalogue diary recipe will bill prescription reference timetable proclamation""",
    "dish": """stew broth pie pudding loaf dumpling pancake tart pasty cake bun scone omelette sausage roast
        ham hotpot trifle custard gingerbread flan fritter turnover biscuit oatcake crumpet casserole
        soup chowder brawn black_pudding fruitcake rissole""",
    "crop": """@root @fruit cabbage marrow pumpkin bean pea lettuce cucumber artichoke cauliflower walnut
        hazelnut mushroom""",
    "office": """bailiff constable sexton beadle churchwarden magistrate clerk steward overseer schoolmaster
        curate notary surveyor tax_collector postmaster ferryman tollkeeper gamekeeper coroner
        alderman parson sheriff verger bell-ringer watchman registrar rent_collector land_agent""",
    "folk": """carter pedlar tinker drover shepherd ploughman reaper dairymaid laundress seamstress
        washerwoman charwoman cook scullion groom ostler stable_boy barmaid potboy errand_boy lodger
        widow widower orphan bachelor spinster apprentice journeyman lamplighter chimney_sweep fiddler
        ballad_singer fortune-teller horse_dealer rag-and-bone_man cattle_dealer woodcutter
        reed_cutter mole-catcher rat-catcher beggar pilgrim hermit wet-nurse midwife ploughboy gleaner
        poacher veteran deserter""",
    "kinsman": """uncle brother cousin nephew grandfather stepfather godfather brother-in-law father-in-law
        great-uncle""",
    "kinswoman": """aunt sister cousin niece grandmother stepmother godmother sister-in-law mother-in-law
        great-aunt""",
    "body": """shoulder elbow knee ankle wrist thumb neck hip back jaw heel forehead ear chin shin eyelid
        knuckle rib""",
    "ailment_n": """cough fever chill headache toothache rash sprain stitch earache boil blister whitlow cramp
        sore_throat burn bruise stomach_ache nosebleed stye bunion abscess""",
    "game": """skittles draughts dominoes marbles quoits leapfrog hopscotch cards chess backgammon
        shuttlecock dice bowls ninepins spillikins""",
    "sound": """creak rattle thud clatter whistle murmur hum drip splash hiss groan knock scratch rumble crash
        clang chime squeal bleat snort crackle rustle tap click jingle squeak whirr gurgle clank thump
        sigh""",
    "look_n": """frown smile scowl shrug sigh grimace nod wink yawn grin sniff glare blush laugh shudder snort
        stare""",
    "trouble": """delay mistake muddle misunderstanding grievance complaint dispute nuisance burden setback
        mishap accident shortage fine debt error quarrel scandal rumour wager""",
    "notion": """plan idea opinion suspicion excuse promise regret hope wish doubt theory guess scheme proposal
        compromise reason objection belief memory warning lesson conclusion habit custom superstition
        conviction remedy ambition preference prejudice argument apology answer principle suggestion
        threat whim instinct""",
    "event": """wedding christening funeral fair auction market sermon supper dance concert meeting election
        trial inspection harvest_home shearing ploughing_match horse_race cattle_show bonfire
        procession picnic raffle lecture regatta christening_feast flower_show wrestling_match
        bell-ringing sheep-washing threshing""",
    "crossing": "bridge ford ferry causeway stile footbridge towpath weir toll-gate viaduct pass-stage",
    "sky_n": """cloud rainbow shower gust thunderclap moonrise sunset dawn shooting_star mist-bank squall
        breeze""",
    "grain_heap": "stook rick haystack sheaf:sheaves bale stack cartload armful swathe windrow bushel",
    "street": "lane alley yard square street high_street row passage close",
    "songbird": """thrush blackbird wren robin finch linnet lark skylark starling bullfinch chaffinch siskin
        goldcrest bunting sparrow jackdaw""",
    "stock": """ewe ram heifer bullock cow calf wether yearling steer nanny_goat billy_goat sow boar kid lamb
        piglet hogget""",
    "mount": "mare foal gelding pony donkey mule carthorse colt cob filly",
    "fowl": "hen goose gander cockerel drake pullet duckling gosling duck bantam",
    "dog": "sheepdog terrier hound spaniel lurcher mastiff pup mongrel",
    "handtool": """hammer chisel mallet saw auger awl plane rasp file axe hatchet adze wedge crowbar vice gimlet
        spokeshave drawknife whetstone trowel plumb_line spirit_level paintbrush scraper clamp chopper
        bradawl""",
    "fieldtool": """spade shovel mattock hoe rake scythe sickle billhook pitchfork flail dibber riddle
        watering_can crook hay_knife turf-cutter seed-drill""",
    "kitchenware": """ladle skewer rolling_pin mortar pestle funnel sieve strainer grater colander toasting_fork
        frying_pan saucepan skillet kettle griddle whisk chopping_board pastry_cutter spatula
        carving_knife nutcracker""",
    "machine": """windlass winch loom spinning_wheel plough harrow grindstone churn balance steelyard ladder
        wheelbarrow handcart pump mangle chaff_cutter winnowing_fan cider_press potter's_wheel lathe
        turnspit""",
    "drybox": "sack basket crate chest hamper bin box bag pannier punnet creel satchel tray bushel",
    "vessel": "jar jug bottle flask pitcher cask keg barrel pail firkin tub bucket can demijohn hogshead",
    "pot": "pot crock bowl basin tin tureen casserole_dish stewpot platter",
    "clothes": """coat cloak apron smock waistcoat jacket shirt blouse skirt petticoat gown dress nightshirt
        jerkin cape tunic pinafore bodice overcoat""",
    "knitwear": "scarf glove mitten stocking sock muffler shawl cap jersey kneewarmer nightcap",
    "footwear": "shoe clog boot slipper gaiter overshoe",
    "headgear": "bonnet cap hat hood straw_hat kerchief nightcap",
    "woodware": """table chair stool bench settle dresser cupboard wardrobe cradle bedstead shelf bookcase desk
        footstool rocking_chair washstand sideboard coffer screen hatstand pew lectern plate_rack
        towel_rail""",
    "linens": """mattress bolster pillow blanket quilt curtain hearthrug tablecloth sheet bedspread cushion
        towel""",
    "ornament": "mirror clock candlestick vase lamp warming_pan fire_screen pottery_dog picture_frame barometer",
    "storage": """cupboard wardrobe dresser coffer trunk sideboard drawer cabinet linen_press chest bureau
        strongbox""",
    "seat": "chair stool bench settle rocking_chair sofa footstool window_seat armchair",
    "hanging": "rafter beam joist lintel ceiling doorpost banister railing",
    "opening": "door window shutter gate hatch skylight trapdoor casement",
    "perch": "doorstep sill porch wall threshold windowsill gatepost parapet step mounting-block",
    "fabric": """roof gable chimney gutter drainpipe wall buttress arch staircase floorboard thatch flue
        partition weathercock hinge latch lock cornerstone flagstone mantelpiece grate cistern balcony""",
    "fieldland": """meadow pasture field furlong paddock orchard common allotment hillside slope hop-yard
        bean_field cornfield""",
    "water": "brook stream pond weir ford millrace backwater spring beck pool mill-pond",
    "waste": """heath moor fen bog marsh thicket spinney coppice dell glen gully quarry gravel_pit clearing
        crag knoll headland sandbank ridge hollow""",
    "way": "lane track footpath bridleway causeway towpath path drove_road cart-road",
    "mark": """stile gate milestone crossroads hedge hedgerow footbridge well culvert sluice ditch dyke
        embankment bank terrace""",
    "farm": "barn byre stable cowshed hayloft granary dovecote henhouse pigsty sheepfold dairy cart-shed",
    "works": """brewhouse bakehouse smithy forge sawmill tannery brickyard limekiln malthouse smokehouse
        workshop warehouse oast-house icehouse wash-house boathouse""",
    "public": """almshouse schoolhouse chapel vestry toll-house gatehouse ferry-house guildhall weigh-house
        coach-house poorhouse belfry reading_room""",
    "homes": "cottage farmhouse rectory lodge manor hunting_lodge tenement",
    "root": "turnip carrot onion leek parsnip beetroot potato radish shallot swede",
    "fruit": """pear apple plum cherry gooseberry raspberry strawberry blackcurrant redcurrant bilberry
        greengage apricot damson quince medlar elderberry""",
    "leak": "leak crack blockage draught hole split_seam gap damp_patch smell rattle",
}

# what cannot be counted
MASS: Mapping[str, str] = {
    "grain": """wheat barley oats maize millet spelt buckwheat bran malt flaxseed linseed rapeseed beans peas
        tares""",
    "stuff": """@dry @wet @textile @fuel @hardware butter tallow beeswax cheese bacon suet dripping curds
        feathers gunpowder sulphur camphor liniment ointment cough-syrup bonemeal""",
    "dry": """flour salt sugar mustard pepper ginger cinnamon nutmeg tea coffee cocoa tobacco snuff soap
        starch oatmeal semolina rice tapioca raisins currants figs dates almonds hops yeast seed
        barley-sugar breadcrumbs pearl_barley""",
    "wet": """vinegar honey treacle lamp-oil fish-oil lye ink varnish turpentine whitewash cream linseed_oil
        furniture-polish milk syrup""",
    "filler_stuff": "mortar sand gravel clay plaster lime pitch tar resin glue putty moss rags cement",
    "grease": "tallow beeswax goose-grease lard linseed_oil mutton_fat soap bran vinegar",
    "textile": "wool flax hemp sacking felt twine rope yarn thread ribbon lace velvet canvas leather horsehair",
    "fuel": "charcoal coal peat kindling logs turf brushwood",
    "hardware": """nails screws solder wire slates bricks withies thatching-reed lead iron putty glass hinges
        rivets planks""",
    "muck": "manure bonemeal guano marl seaweed ashes soot leaf-mould",
    "herb": """thyme sage rosemary rue mint parsley chervil savory lovage marjoram fennel dill chives borage
        hyssop lavender wormwood horseradish caraway coriander aniseed angelica tansy yarrow betony
        comfrey feverfew mugwort sorrel chamomile valerian lemon_balm garlic meadowsweet elderflower
        willow_bark""",
    "drink": """cider ale perry mead tea coffee cocoa elderberry_wine cowslip_wine buttermilk sloe_gin
        ginger_beer stout""",
    "virtue": """patience courage thrift honesty kindness wisdom modesty diligence loyalty tact charity
        prudence gentleness cheerfulness generosity skill grace humility perseverance common_sense
        candour dignity mercy""",
    "fault": """pride envy greed spite sloth vanity obstinacy temper gluttony jealousy meanness carelessness
        cowardice cunning rudeness idleness impatience self-pity cruelty deceit stubbornness mischief
        malice pettiness""",
    "mood": """relief dismay delight surprise sorrow satisfaction alarm amusement disgust disappointment
        gratitude embarrassment curiosity contempt boredom anxiety fury resignation tenderness
        bewilderment astonishment remorse indignation triumph unease suspicion wonder despair
        indifference shame""",
    "smell": """woodsmoke wet_wool tallow onions leather peat malt vinegar damp_plaster apples horses tar
        yeast mice fresh_bread cut_grass wax mushrooms lavender burnt_milk sawdust pipe_smoke fish
        camphor mildew""",
    "weather_thing": "rain sleet hail snow drizzle mist fog frost thunder lightning wind sunshine haze dew heat",
    "matter": """rent tithe drainage grazing firewood timber fencing gravel bell-ropes paving schooling
        poor-relief trespass ploughing milk-money gleaning fishing haymaking peat-cutting
        swine-keeping road-mending tolls""",
    "illness": """ague influenza pleurisy bronchitis jaundice measles mumps whooping-cough gout lumbago
        rheumatism colic scarlatina quinsy shingles dropsy croup""",
    "cloth": """linen wool flannel calico muslin corduroy tweed velvet fustian sackcloth worsted serge gingham
        cambric""",
    "metal": "iron brass copper pewter tin silver lead bronze steel",
    "wood": "oak elm ash pine beech walnut yew cherry-wood pear-wood chestnut larch boxwood",
}

# each singular with its plural
_IRREGULAR = """calf=calves loaf=loaves sheaf=sheaves goose=geese mouse=mice dormouse=dormice woodlouse=woodlice
    shelf=shelves fish=fish trout=trout carp=carp tench=tench perch=perch roach=roach bream=bream pike=pike dace=dace
    deer=deer potato=potatoes washerwoman=washerwomen charwoman=charwomen ferryman=ferrymen alderman=aldermen
    watchman=watchmen journeyman=journeymen rag-and-bone_man=rag-and-bone_men penknife=penknives scarf=scarves
    bellows=bellows grayling=grayling chub=chub crossroads=crossroads quail=quail snipe=snipe hay_knife=hay_knives
    carving_knife=carving_knives brother-in-law=brothers-in-law father-in-law=fathers-in-law
    sister-in-law=sisters-in-law mother-in-law=mothers-in-law"""
IRREGULAR_PLURALS: Mapping[str, str] = dict(pair.replace("_", " ").split("=") for pair in _IRREGULAR.split())
