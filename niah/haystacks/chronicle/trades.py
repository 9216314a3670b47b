"""Trades of the chronicle's people: workplace and tasks of each, the tasks as verb phrases (grammar: ``_phrases``)."""

from __future__ import annotations

# title | workplace | tasks, which are verb phrases
TRADES = """
miller|mill|grind {grain};dress the millstone;weigh the {grain} sacks;sift the bran;grease the mill wheel;clear \
    the millrace
cooper|cooperage|bend staves over the fire;hoop {a} cask;char the inside of {a} cask;plane the barrel \
    heads;caulk {a} {vessel} with rushes
smith|smithy|shoe {a} {mount};hammer out {a} {fieldtool};blow up the forge;temper {a} {handtool};draw iron \
    wire;straighten {a} {worn_hard} {fieldtool}
weaver|weaving shed|thread the loom;weave {a} {color} {cloth};wind the bobbins;card {stuff};stretch the {cloth} \
    on tenterhooks;mend the shuttle
baker|bakehouse|knead the dough;fire the oven;bake {small} {dish.pl};prove the loaves;rake out the embers;dust \
    the {dish.pl} with {dry}
thatcher|yard|comb the reed;peg down the thatch;cut spars from {tree};trim the eaves of the {building};carry \
    reed up the ladder
carpenter|workshop|plane {a} {wood} board;saw {wood} planks;dovetail {a} {storage};glue the {woodware};turn a \
    chair leg;sand {a} {wood} {opening}
potter|pottery|throw {a} {pot};glaze the {vessel.pl};fire the kiln;wedge the clay;paint {flower.pl} on {a} {vessel}
tanner|tannery|scrape the hides;soak skins in oak bark;stretch {a} {stock} hide;work {grease} into the \
    leather;stir the pits
saddler|saddlery|stitch {a} bridle;stuff a saddle with {textile};cut straps;wax the thread;mend {a} {worn} harness
cobbler|shop|sole {a} {worn} {footwear};cut uppers;hammer hobnails into {a} boot;wax the thread;stretch {a} \
    {footwear} on the last
beekeeper|bee garden|smoke the hives;cut the combs;strain honey through {cloth};plait {a} straw skep;catch {a} \
    late swarm
shepherd|fold|count the {stock.pl};trim the feet of {a} {stock};carry {a} lamb out of the {land};mend the \
    hurdles;dag the ewes
dairywoman|dairy|churn the butter;press the curds;skim the cream;turn the cheeses;scald the pails;salt {a} new cheese
gardener|walled garden|prick out {crop.pl};train {a} {tree} along the wall;dig the {crop} bed;stake the \
    {flower.pl};net the {crop.pl}
innkeeper|inn|tap {a} cask of {drink};chalk up the scores;air the beds;carve {a} {dish};turn out the last \
    drinkers;swill down the yard
ferryman|ferry-house|pole the punt across;splice the ferry rope;bail out the boat;tar the hull;charge {folk_a} \
    {price};sound the channel
fisherman|boathouse|mend the nets;set eel traps;gut {small} {fish.pl};bait the lines;hang {fish.pl} in the {building}
chandler|shop|dip candles;trim the wicks;melt tallow in {a} {pot};weigh {dry};wrap soap in paper
apothecary|shop|pound {herb};roll pills;bottle {a} tonic of {herb};label {small} {vessel.pl};write out a bill \
    for {herb}
schoolmaster|schoolhouse|rule the copybooks;hear the spelling;sharpen quills;beat time to the tables;fill the \
    inkwells;lock up the {reading_matter.pl}
mason|yard|dress {a} {perch};mix mortar;lay a course of stone;point the {fabric} of the {building};carve {a} \
    {animal} over the {opening}
glazier|workshop|cut panes;putty the {building} windows;lead {a} {color} pane;score the glass;grind {color} glass
wheelwright|yard|fit a new felloe;bore the hub;shrink a tyre on the wheel;paint the {vehicle} {color};shave \
    spokes from {wood}
clockmaker|shop|oil the escapement;file {a} tiny cog;set the {building} clock;polish {a} watch case;hang {a} pendulum
tailor|shop|cut {a} {cloth} {clothes};chalk the seams;press {a} {garment};sew on {small} buttons;line {a} \
    {garment} with {cloth}
laundress|wash-house|boil the sheets;starch {small} {linens.pl};peg out the {garment.pl};iron {a} \
    {garment};scrub the collars
brewer|brewhouse|mash the malt;skim the yeast;rack off the ale;taste the {taste} beer;scald the tuns;roll out \
    {small} casks
carter|yard|load the wagon with {drybox.pl};grease the axles;feed the team;mend a trace with {textile};lead the \
    horses to the {land}
ropemaker|rope walk|hackle the hemp;twist the strands;tar {a} length of cord;coil rope in the {farm};test a line \
    with {a} {vessel} of {wet}
bookbinder|bindery|sew the sheets of {reading_matter_a};gild the edges;pare the leather;press {small} \
    volumes;paste down the endpapers
dyer|dye-house|stir the {color} vat;steep {cloth} in {plant.pl};rinse the wool in the {land};grind {color} \
    pigment;hang out {color} yarn
basketmaker|shed|soak the withies;weave {a} {drybox};strip {tree};trim {a} handle;stack {drybox.pl} by the {opening}
midwife|house|boil water in {a} {pot};gather {herb};walk out to {a} birth;bind up {a} {body};sit with {folk_a}
tinker|yard|solder {a} {worn_hard} {kitchenware};beat out {a} dent;sharpen {small} {handtool.pl};tin {a} {metal} \
    {kitchenware}
charcoal burner|clearing|stack the {wood} billets;damp down the clamp;watch the smoke;rake out the charcoal;fill \
    {drybox.pl} for the smith
surveyor|office|measure the {land};ink in {a} map;drag the chain round the {land};drive pegs into the \
    {land};copy a plan of the {building}
sexton|churchyard|toll the bell;scythe between the graves;sweep out the {room};oil the {public} hinges;wind the \
    {building} clock
butcher|shop|hang {a} side of bacon;joint {a} {stock};stuff sausages;sharpen the cleaver;salt {small} tongues
gamekeeper|lodge|set {small} traps;rear {bird} chicks;clean the guns;walk the {land};nail {a} dead {wild} to the \
    {farm} door
goldsmith|workshop|set a stone in {a} {treasure};melt down {a} {treasure};engrave {a} {treasure};weigh gold \
    dust;draw {a} silver thread
notary|office|copy {reading_matter_a};seal {a} {reading_matter};witness a signature;search the \
    {reading_matter.pl};read over {a} lease
lamplighter|lamp store|trim the street lamps;fill the cans with lamp-oil;clean {small} lamp glasses;climb the \
    ladder by the {building}
organist|chapel|tune the reeds;practise {a} {mood_adj} fugue;pump the bellows;copy out hymns;scold the choir
drover|paddock|mark the {stock.pl};whistle up the dogs;count {stock.pl} through the {opening};water the herd at \
    the {land}
hatter|shop|block {a} {headgear};brush the felt;trim {a} {headgear} with {textile};steam a brim;stitch {a} \
    {color} band
"""
