"""Words that mean the same in the names of tools, and words that mean nothing in a query."""

from aggregator.search.words import stem

_TABLE = """
delete remove erase destroy purge drop
list get fetch retrieve show display view read
create add make new insert generate build
update edit modify change alter set patch
search find query lookup seek discover locate
send post deliver dispatch
run execute invoke launch start trigger
stop cancel abort terminate kill end
move transfer relocate
copy duplicate clone
save write store persist
upload attach
download export
message msg chat
repo repository
db database
doc docs document
dir directory folder
file files
image picture photo img
email mail gmail
issue ticket bug
pr pull
user member account person people
config configuration settings setting preferences
info information detail details
calendar schedule event meeting appointment
task todo
web website internet online
url link
page webpage
stock equity share ticker
price cost rate quote
currency forex
crypto cryptocurrency bitcoin
news headline article
weather forecast temperature
map location place geocode
route direction directions navigate
train railway rail
flight airline plane
hotel accommodation lodging
restaurant dining
recipe dish cook food meal
movie film
video youtube clip
song music track
convert transform translate
translate translation language
summarize summary summarise
analyze analysis analytics analyse
compute calculate calculation math
chart graph plot diagram visualization
spreadsheet excel sheet
presentation powerpoint slide slides
vm machine instance
k8s kubernetes
paper publication academic scholar
buy purchase shop shopping order
job career employment
company business organization organisation
authenticate login auth
secret password credential
function lambda
picture photo
"""

STOP_WORDS = frozenset(
    """
    a about all also am an and any are as at be because been but by can could did do does each
    either else for from had has have he her here him his how i if in into is it its just kindly
    let like may me might more most must my need no nor not of on once one only or other our out
    please she should so some such than that the their them then there these they this those
    through to too up us use used using very via want was we were what when where whether which
    while who whom whose why will with within would you your
    """.split()
)


def _equivalents() -> dict[str, tuple[str, ...]]:
    """Turn the table into a map from each stem to the stems it may stand for."""
    found: dict[str, dict[str, None]] = {}
    for line in _TABLE.strip().splitlines():
        stems = list(dict.fromkeys(stem(word) for word in line.split()))
        for each in stems:
            found.setdefault(each, {}).update((other, None) for other in stems if other != each)
    return {each: tuple(others) for each, others in found.items()}


EQUIVALENTS = _equivalents()
