"""What is known of words before any catalog is: which mean the same, which mean little."""

STOP_WORDS = """
a about all also am an and any are as at be because been both but by can could did do does each
either else for from had has have he her here him his how i if in into is it its just kindly let
like may me might more most must my need no nor not of on once one only or other our out please
she should so some such than that the their them then there these they this those through to too
up us use used using very via want was we were what when where whether which while who whom whose
why will with within would you your
d don ll m re s t ve
"""
"""Words that say nothing of what is looked for."""

FAINT = """
able allow amazing another appear appropriate assist assistance available aware awesome based
basic beautiful become begin believe best better bit bring capable care choose clear come complete
complex comprehensive consider cool correct curious desire detail detailed details different
easily easy effective efficient enable enjoy ensure especially etc even ever every everyone
everything exact exactly excellent exciting existing extra fast feature friendly fun general give
given good great happen happy hard heard hello help helpful hey hi high highly hope ideal
important improve including individual interested interesting keep kind know known large less
little ll long lot love main major manner many matter mcp mention mind minute moment much multiple
necessary never nice now obtain offer ok okay option options overall own particular perfect
perhaps pick piece possible potential powerful prefer preference present pretty previous
professional proper provide provided purpose quality quick quickly quite range ready real
really reason receive related relevant reliable require required respond right same seem
serious several show simple simply since small solution something soon sort specific specifically
still stuff successful suitable sure tell thank thanks thing things think together top totally
trying understand unique unsure useful usual utilize various way ways well wide without wonder
wondering worry yes yet
"""
"""Words people wrap a request in: they count, but less than what it is about."""

COMMON = {
    0.30: "get",
    0.15: "list name id return search tool",
    0.08: """
        query specific number description information available detail set content url data access
        user create file string api include manage result ai provide
    """,
    0.04: """
        new retrieve generate type path code format current limit text page image add fetch
        specify project contain base parameter message key give date time start request update
        require filter execute example check item prompt optional default find latest recent
        show support help
    """,
    0.02: """
        task info status value multiple output location database analyze title error analysis call
        first web model directory run existing language document response full read process
        service delete link count post operation input app send object test next open extract match
        index end keyword table command complete source summary field local single calculate
        connection collection order level system select question feature work plan total function
        point related unique group category version range report build view topic previous product
        write different best day people world make platform
    """,
}
"""The share of tools that have a word, where it is much the same in any catalog."""

SAME = """
delete remove erase destroy forget
list get fetch retrieve
show display view
show list
create add make new
update edit modify change
search find query lookup
send post
run execute invoke
start launch begin
stop cancel abort terminate
move transfer
copy duplicate clone
save write store
memory remember recall memorize
upload attach
message msg
repo repository
db database
doc docs document
dir directory folder
image picture photo img
email mail
issue ticket bug
config configuration settings
info information details
calendar schedule event
task todo reminder
web website internet online
url link
stock equity ticker share
price cost quote
crypto cryptocurrency
news headline
weather forecast
location place
route direction
train railway rail
flight airline
hotel accommodation lodging
restaurant dining
recipe dish
movie film
song music
translate translation
summarize summary summarise
analyze analysis analytics analyse
compute calculate
chart graph plot diagram
spreadsheet excel sheet xlsx
presentation powerpoint slide ppt
vm machine
k8s kubernetes
paper publication article
buy purchase shop
job career
company business
login authenticate auth
secret password credential
verify validate check
convert transform
recommend suggest
"""
"""Words that name one thing or deed; each may stand for the others of its line."""

TOPICS = """
weather forecast: rain rainy snow sunny cloud wind windy humidity storm climate temperature
  umbrella hot cold degree celsius meteorological outside jacket
air quality: pollution smog pm2 aqi ozone
food recipe meal: breakfast lunch dinner supper snack cook bake grill ingredient cuisine dish
  vegetarian vegan eat dessert soup salad chicken pasta kitchen
nutrition diet food: calorie protein vitamin weight nutrient healthy carb fat intake
restaurant: dinner lunch cuisine menu eat sushi pizza cafe bar diner reservation dining
drink: cocktail wine beer coffee tea beverage whisky
travel trip tour: vacation holiday itinerary destination journey visit sightseeing tourist abroad
  backpack getaway explore honeymoon cruise
hotel: stay room guest night booking airbnb hostel resort homestay accommodation motel apartment
flight: fly airport airfare airline airplane departure layover
train ticket: station rail railway departure platform subway metro
map location place: nearby near around address coordinate latitude longitude city street park gps
  geographic neighborhood landmark museum attraction hospital
route navigation direction: drive walk distance traffic commute shortest road
parking: park carpark garage
book: novel author reading literature fiction library chapter publisher mystery bestseller
movie tv media: film series cinema actor actress episode netflix watch show director documentary
  anime entertainment streaming
music: song playlist artist album band lyrics concert spotify listen singer melody guitar piano
  soundtrack tune
video: youtube clip footage channel vlog film
podcast: episode listen interview host
game: player gaming quest puzzle chess champion character multiplayer play console playstation
  xbox card dice
sport: football soccer basketball baseball tennis league team score match nba nfl mlb nhl
  tournament athlete cricket golf championship
surf ocean: wave beach tide swell
news: headline event happening politics breaking journalism election current affair
stock finance market investment: invest investor portfolio share dividend trade trading earnings
  nasdaq nvidia tesla equity bond fund revenue
crypto cryptocurrency: bitcoin btc ethereum eth blockchain wallet token coin nft defi
currency exchange: usd eur cny gbp jpy dollar euro yen pound forex yuan
asset price: gold silver metal precious commodity oil
finance calculator: loan mortgage interest credit debt repayment budget savings tax bank payment
company business: corporation startup enterprise headquarters ceo competitor firm industry
  employee
marketing sales: campaign advertise advertising customer lead audience conversion promote brand ad
  ppc
job resume: career hire interview salary cv recruiter employment vacancy candidate position
  applicant
shopping product: buy purchase amazon brand store cart sale gift shop laptop phone camera
  smartwatch furniture headphone electronics
discount coupon: deal promotion bargain cheap sale voucher save
gift: present birthday anniversary christmas father mother surprise
fashion clothing: shirt dress shoe outfit apparel wear jacket jeans style
beauty: cosmetic makeup skincare hair perfume lipstick skin
health medical: doctor disease symptom drug hospital patient medicine treatment covid clinical
  therapy pain vaccine flu
fitness workout: exercise gym training muscle yoga running weight strength
pet animal: dog cat puppy kitten
house property real estate: apartment rent home bedroom mortgage buyer tenant landlord realtor
car vehicle: drive automobile auto dealer tesla engine truck motorcycle ev
law legal: lawyer attorney court contract regulation criminal lawsuit judge defense rights
  constitution
education course learn: lesson teacher tutor class school student study university tutorial
  training curriculum college coursera
research paper academic: scholar scholarly science scientific study thesis journal arxiv citation
  scientist publication literature
language translate: spanish german french chinese japanese english korean italian word phrase
  meaning pronunciation dictionary vocabulary
space nasa: astronomy planet star galaxy mars moon satellite astronaut telescope rocket
history: ancient empire war century historical civilization king
encyclopedia wikipedia: historical biography fact knowledge history explain who
image photo: picture drawing illustration logo avatar visual paint painting art artwork portrait
design: logo template banner poster visual graphic layout invitation flyer
chart diagram: visualize visualization flowchart plot histogram graph network node
audio speech: voice sound pronounce narration speak transcribe transcript recording spoken
social media: instagram twitter tweet facebook tiktok hashtag follower influencer post caption
  celebrity
website web: page site blog domain landing seo browser homepage
seo keyword website: ranking traffic backlink
domain whois: registrar dns hostname
web search: google internet online bing information latest
browser page: click navigate screenshot form scroll website
code programming: python javascript java debug script developer software snippet algorithm compile
app: application mobile android ios iphone
file document: pdf docx txt markdown csv report disk folder path
spreadsheet excel: csv xlsx row column cell workbook worksheet
presentation: slide powerpoint deck pptx
word document: docx paragraph heading letter
email: inbox gmail outlook newsletter mailbox
message chat: slack whatsapp telegram sms conversation notify tell discord inform
calendar: meeting appointment availability schedule invite agenda lunar almanac
note task reminder: todo remember deadline organize checklist remind
project task: management milestone sprint kanban team roadmap
database sql: query table row record schema postgres mysql sqlite
server cloud: deploy host aws azure gcp container infrastructure log devops ssh
monitor metric: performance rate latency request error failure trend cpu
security scan: vulnerability threat attack phishing malware fraud hacker suspicious ddos
math calculate calculator: equation sum percentage algebra formula arithmetic integral multiply
  divide average
time date: clock timezone today tomorrow yesterday hour now
random number: dice shuffle lottery pick
horoscope astrology fortune: zodiac tarot fate bazi destiny birth
charity: donate donation nonprofit volunteer ngo
survey form: quiz questionnaire poll feedback
writing content: essay article blog copy draft caption rewrite paraphrase grammar express polish
  speech
story: narrative tale fairy storytelling plot fiction
memory knowledge: remember recall forget
geography earthquake: quake seismic volcano
"""
"""What a request is about: words after a colon may mean the words before it."""
