"""The texts that the pages of `pages.py` are made of."""

ENGLISH = [
    "The harbour froze for eleven weeks that winter, and the pilots walked out to the ships over ice that groaned under "
    "their boots. Nobody had planned for it. Coal was brought on sledges, letters came twice a month, and the port "
    "office kept a ledger of every crack that opened in front of the breakwater.",
    "When the thaw came, it came within two days. Three barges that had been left beside the fish market were lifted, "
    "turned around and set down on the quay, where one of them served as a bakery until the following autumn. Its oven "
    "can still be seen in the cellar of the customs house.",
    "Engineers measured the current again and found that the channel had moved by forty metres. They argued about the "
    "reason for a decade. Some blamed the new pier, others the sand that upstream farms had loosened; the truth, as so "
    "often, was a little of each, and nobody was pleased by it.",
    "A beekeeper counts differently from other people. She does not ask how many animals there are but how heavy the box "
    "is, how loud it sounds at noon, and whether the bees at the entrance hurry. From these three facts she decides "
    "whether to open the lid or to leave the colony alone for another week.",
    "Cold springs are less dangerous than wet ones. In rain the foragers stay inside and eat what they have collected, "
    "while the queen continues to lay eggs. By the end of May a strong hive can starve within a few days, surrounded by "
    "blossoming trees that no bee was able to reach.",
    "Whoever wants to learn the craft should begin with two colonies rather than one, because a comparison teaches more "
    "than any handbook. If both behave alike, the weather explains it. If they differ, something happened inside, and "
    "it is worth looking at the brood before the evening.",
    "Old maps exaggerate mountains. The draughtsmen drew what travellers feared, so a pass of modest height became a row "
    "of teeth, and the gentle valley behind it shrank to a line. Only when armies began to pay for surveys did the "
    "landscape on paper begin to resemble the one outside.",
    "The oldest known triangulation of the province used church towers, a brass quadrant and a great deal of patience. "
    "Each angle was read nine times. The surveyor's notebooks mention fog on two days of three, and once a goat that "
    "had eaten the signal flag of an entire morning.",
    "Errors were not hidden. At the edge of every sheet a small table lists by how many feet the closing side of a "
    "triangle missed its calculated length, and modern satellites confirm those numbers almost exactly. Honest "
    "uncertainty, it turns out, ages better than confident lines.",
    "Bread dough made with much water is unpleasant to touch and rewarding to eat. The bubbles grow large, the crust "
    "shatters, and the crumb stays moist for three days. Bakers who are used to firm dough add flour in despair; they "
    "should wet their hands instead and fold the edges towards the middle.",
    "Salt slows fermentation down, which is useful in summer kitchens. Warmth does the opposite. A baker therefore "
    "changes one of the two when the seasons change, and writes down the hour at which the dough had doubled, since "
    "memory flatters and clocks do not.",
    "An archive smells of glue and dust, yet its greatest enemy is light. Blue ink vanishes first, then red. The "
    "restorers work behind yellow curtains and photograph each page before they turn it, knowing that the photograph "
    "may be all that anybody reads in a hundred years.",
    "Most questions that visitors ask concern their own families. They want a date, a ship, the spelling of a surname "
    "before some clerk simplified it. The answer often stands in a register of something unrelated: a lawsuit over a "
    "fence, a list of vaccinated children, a receipt for nineteen pairs of shoes.",
    "Tunnels are dug from both ends and meet in the middle, at least that is the intention. In the summit tunnel the two "
    "crews heard one another for a week before they broke through, and the difference in height was less than the "
    "thickness of a thumb. The foremen exchanged hats, then everyone went to sleep.",
    "Ventilation decided whether a railway could use steam in the mountains at all. Natural draught worked on windy days "
    "only. Later a fan of eight metres pushed air from the northern portal, and its hum became so familiar to the "
    "village that people woke whenever it stopped.",
    "What remains of the line today is a path for bicycles with gentle slopes and sudden darkness. Lamps switch on as "
    "riders approach and fade behind them. Bats have claimed the side chambers where gunpowder was stored, and from "
    "October until April the gates stay closed for their sake.",
]

ARABIC = [
    "وصلت السفينة إلى الميناء بعد رحلة استمرت أربعين يوما، وكان البحارة متعبين لكنهم فرحوا برؤية المنارة البيضاء فوق التل.",
    "كتب القبطان في دفتره أن الرياح كانت معاكسة منذ الأسبوع الثاني، وأن الماء العذب كاد ينفد قبل أن تظهر اليابسة في الأفق.",
    "في السوق القديم اجتمع الناس حول التجار ليسألوا عن أسعار القماش والتوابل، وعن أخبار المدن البعيدة التي مرت بها القافلة.",
    "بعد سنوات عديدة بنى أهل المدينة متحفا صغيرا قرب الرصيف، وفيه خرائط ورسائل وأدوات كان الملاحون يستعملونها لمعرفة الطريق.",
]
HEBREW = [
    "הספרייה הישנה נפתחה מחדש אחרי שיפוץ ארוך, והתושבים באו בהמוניהם לראות את אולם הקריאה ואת החלונות הגבוהים.",
    "בקומה העליונה נשמרים כתבי יד נדירים שאסור לגעת בהם, אך אפשר לראות צילומים ברורים שלהם על מסך גדול ליד הכניסה.",
    "הספרנית סיפרה כי המבקרים הצעירים שואלים בעיקר על מפות, ואילו המבוגרים מחפשים עיתונים מן השנים שבהן היו ילדים.",
    "בערבי חמישי מתקיימת הרצאה פתוחה לקהל, ואחריה אפשר לשבת בחצר, לשתות תה ולהמשיך לדבר על הספר שנבחר לאותו שבוע.",
]
RUSSIAN = [
    "Старый мост через реку закрыли на ремонт, и жители левого берега снова вспомнили о лодках, которые когда-то ходили каждые полчаса.",
    "Инженеры обнаружили трещины в двух опорах и решили заменить их целиком, хотя поначалу речь шла лишь о покраске перил.",
    "Работы продолжались до поздней осени, потому что вода в том году стояла необычно высоко и течение мешало водолазам.",
    "Когда движение наконец открыли, первым по мосту прошёл школьный оркестр, а за ним медленно проехал синий автобус.",
]
GERMAN = [
    "Über die Brücke führt ein schmaler Weg, den früher nur Müller und Färber benutzten; heute gehört er den Spaziergängern.",
    "Die Mühle selbst brannte zweimal ab und wurde jedes Mal größer aufgebaut, was die Nachbarn nicht ohne Ärger sahen.",
    "Im Frühjahr führt der Bach so viel Wasser, dass man das Rauschen bis in die Küche des Gasthofs hört, trotz geschlossener Läden.",
    "Wer übernachten möchte, fragt am besten schriftlich an, denn es gibt nur fünf Zimmer, und zwei davon sind meist vergeben.",
]
JAPANESE = [
    "港の灯台は百年以上前に建てられ、今でも毎晩、漁から戻る船を静かに導いている。",
    "灯台守の家族は丘の上の小さな家に住み、天気と波の高さを毎朝ノートに書き続けた。",
    "嵐の夜には町の人々も集まり、火を焚いて船乗りたちに浜の場所を知らせたという。",
    "現在は機械が光を回しているが、夏の間だけ見学者が階段を上り、海を眺めることができる。",
]
CHINESE = [
    "这座古桥横跨两岸已有三百年，石板上留下了无数马车的痕迹，雨后尤其清晰可见。",
    "村里的老人说，修桥的石头来自北边的山谷，工匠们冬天把它们从冰面上拖过来。",
    "每年春天河水上涨时，孩子们站在桥上数漂过的木头，谁数得最多谁就得到一块糖。",
    "去年专家重新检查了桥墩，认为它还可以使用很久，只需要更换几块松动的栏杆。",
]

CODE = [
    "fn main() {\n    let total: u64 = (1..=10).filter(|n| n % 2 == 0).sum();\n    if total < 100 && total > 0 {\n"
    "        println!(\"{total}\");\n    }\n}",
    "def median(values):\n    ordered = sorted(values)\n    middle = len(ordered) // 2\n    return ordered[middle] "
    "if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2",
    "$ tar -czf backup.tar.gz --exclude=cache documents\n$ sha256sum backup.tar.gz > backup.sum\n$ rsync -av backup.* "
    "archive:/srv/backups/",
]
