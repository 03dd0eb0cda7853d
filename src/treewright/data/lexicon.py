"""The words, productions and planted preferences of `make_treebank`, as data.

A production is a weight and a row of elements. ``(NP ...)`` is a constituent; a name in small letters
is another symbol of the grammar, an ambiguity or a function word; ``NN.person`` is a word with that tag
from that list, ``NN{object}`` the word drawn for that slot. An element may go on with

=============  ==================================================================================
``#mark``      a name for the phrase; a slot is a mark too
``>relation``  its dependency relation; the one element without a relation is the head
``@mark``      the phrase it depends on, where this is not the head beside it
``=ROLE``      its role for the verb it depends on; ``ARGM-*`` leaves the kind to its first word
``~mark:ROLE`` the marked phrase has this role for the verb at the head of this element
``?20``        it is there in 20 of 100 cases
=============  ==================================================================================
"""

import re
from functools import cache
from itertools import product
from typing import NamedTuple


class Word(NamedTuple):
    """A word as it stands in a sentence."""

    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    sense: str
    """Empty where the word is no predicate."""


class Family(NamedTuple):
    """An ambiguity: one row of words with two structures."""

    decided: str
    """The slot of the word whose head is in question."""
    heads: tuple[str, str]
    """The slots of its head in either reading."""
    readings: tuple[str, str]
    """The production of either reading, over the same words."""
    structures: tuple[str, str]
    """The arcs between the slots in either reading."""
    rules: str
    """For each rule its weight and the words of each slot, the most frequent first.

    The slots with a star decide. The words of a slot fall into two hidden classes by turns, and the
    classes of the deciding words add up, modulo 2, to the number of the right reading: as long as one of
    these words is unknown, both readings are equally likely.
    """


NOISE = 0.02
"""Share of the planted decisions that go against their rule."""

SLOT_FREQUENCIES = (5, 5, 1, 1)
"""Of the words of a slot; both hidden classes are equally frequent."""

MAX_DEPTH = 2
"""How many clauses that hold clauses may be nested in one another."""

NOUNS = {
    "person": """sailor widow baker miller guard poet clerk gardener pilot farmer juggler nurse monk painter
        hermit plumber librarian magician beekeeper shepherd blacksmith janitor duchess apprentice locksmith
        astronomer trapeze-artist cartographer ventriloquist understudy""",
    "animal": """fox goose goat heron otter badger donkey owl hen beetle parrot pony squirrel hedgehog turtle
        walrus lobster camel ostrich armadillo""",
    "thing": """lantern kettle umbrella violin ladder basket wheel teapot button pillow bucket trumpet compass
        candle hammer suitcase sandwich mirror drum barrel carpet statue telescope crown accordion
        wheelbarrow thimble cuckoo-clock monocle weathervane""",
    "fragile": "vase window pot egg plate teacup lamp chandelier",
    "vessel": "jar basket barrel bucket bowl wheelbarrow",
    "stuff": "honey jam porridge marzipan mustard pudding toast spinach",
    "place": """tower meadow harbor cellar orchard village library kitchen attic bakery castle stable theater
        lighthouse observatory greenhouse""",
    "event": "storm feast lunch concert eclipse festival harvest rehearsal sunrise election regatta",
    "text": "story rumor letter poem joke song riddle ballad",
}
"""By list, the most frequent first: a word's frequency falls with its rank."""

VERBS = {
    "handle": """borrow clean drop wrap lift own inspect paint wash polish repair hide measure bury decorate
        misplace unpack auction""",
    "greet": "thank visit warn trust tease help invite ignore hug applaud recognize outwit",
    "mention": "describe remember notice praise like prefer mention discuss",
    "please": "puzzle please annoy amuse frighten delight bore bewilder",
    "move": "sing dance laugh snore whistle yawn sneeze giggle mumble grin hesitate gargle",
    "appear": "arrive vanish appear fall stumble faint return emerge",
    "spread": "appear circulate vanish emerge",
    "break": "crack break explode shatter roll.02 wobble",
    "lend": "lend send show pass mail bequeath",
    "think": "think believe announce whisper suspect insist",
    "want": "want try hope plan decide refuse pretend",
    "become": "become seem look.02 feel.02 grow.02",
    "eat": "eat cook taste burn devour",
}
"""By frame; a sense other than ``.01`` stands after the lemma."""

ADJECTIVES = {
    "person": """old young sleepy clever nervous polite grumpy famous cheerful bearded absent-minded solemn
        barefoot eccentric""",
    "animal": "small old hungry spotted lazy fierce plump curious tame elderly",
    "thing": "old rusty golden tiny wooden heavy broken expensive striped borrowed squeaky translucent",
    "event": "famous long unexpected annual disastrous",
    "mood": "hungry sad happy angry proud suspicious dizzy seasick melancholy",
}

ADVERBS = {
    "manner": "quietly slowly gladly politely carefully proudly loudly clumsily gracefully reluctantly",
    "time": "yesterday again today early late",
}

NAMES = "Mira Tobin Olga Felix Greta Bruno Ines Hugo Selma Anton Della Ruben"
NAME_PARTS = ("B Br D F G H K L M N P R S T V Z", "a e i o u", "d l m n r s v nt rm lv", "a el ette ina ora")
"""Parts of the rare names, most of which are met for the first time."""
DAYS = "Monday Friday Sunday Tuesday Saturday Thursday Wednesday"
NUMERALS = "two three four seven nine twelve"
RARE_NUMBERS = range(13, 1000)

FUNCTION_WORDS = (
    ("DET", "DT", "Definite=Def|PronType=Art", "the"),
    ("DET", "DT", "Definite=Ind|PronType=Art", "a an/a"),
    ("DET", "DT", "Number=Sing|PronType=Dem", "this"),
    ("DET", "DT", "Number=Plur|PronType=Dem", "these/this"),
    ("DET", "DT", "PronType=Tot", "every"),
    ("DET", "DT", "PronType=Ind", "some"),
    ("PRON", "PRP", "Case=Nom|Gender=Masc|Number=Sing|Person=3|PronType=Prs", "he"),
    ("PRON", "PRP", "Case=Nom|Gender=Fem|Number=Sing|Person=3|PronType=Prs", "she"),
    ("PRON", "PRP", "Case=Nom|Number=Plur|Person=3|PronType=Prs", "they"),
    ("PRON", "PRP$", "Case=Gen|Gender=Masc|Number=Sing|Person=3|Poss=Yes|PronType=Prs", "his"),
    ("PRON", "PRP$", "Case=Gen|Gender=Fem|Number=Sing|Person=3|Poss=Yes|PronType=Prs", "her"),
    ("PRON", "PRP$", "Case=Gen|Number=Plur|Person=3|Poss=Yes|PronType=Prs", "their"),
    ("PRON", "WP", "PronType=Rel", "who"),
    ("PRON", "WDT", "PronType=Rel", "which"),
    ("SCONJ", "IN", "_", "that while because although"),
    ("ADV", "WRB", "PronType=Int", "when"),
    ("ADP", "IN", "_", "of with beside from near for at by about in behind after before during on to"),
    ("PART", "TO", "_", "to"),
    ("CCONJ", "CC", "_", "and or"),
    ("PART", "RB", "Polarity=Neg", "not"),
    ("AUX", "VBD", "Mood=Ind|Tense=Past|VerbForm=Fin", "did/do had/have"),
    ("AUX", "VBD", "Mood=Ind|Number=Sing|Person=3|Tense=Past|VerbForm=Fin", "was/be"),
    ("AUX", "MD", "VerbForm=Fin", "will could/can"),
    ("PART", "POS", "_", "'s"),
    ("PUNCT", ",", "_", ","),
    ("PUNCT", ".", "_", "."),
)
"""UPOS, Penn tag, features, words; a lemma that is another word stands after a stroke."""

FUNCTION_LISTS = {
    "DT.one": "the the the the the the the the a a a a a this every",
    "DT.many": "the the the some some these",
    "PRP.any": "she he they",
    "PRP$.any": "her his their",
    "MD.any": "will could",
    "TO.any": "to",
    "IN.to": "to",
    "IN.place": "in near behind",
    "IN.time": "after after before during",
    "IN.why": "because although while",
}

MODIFIER_ROLES = {
    "with": "ARGM-MNR",
    "beside": "ARGM-LOC",
    "from": "ARGM-DIR",
    "near": "ARGM-LOC",
    "for": "ARGM-PRP",
    "at": "ARGM-LOC",
    "because": "ARGM-CAU",
    "although": "ARGM-ADV",
    "while": "ARGM-TMP",
}
"""What a phrase under ``ARGM-*`` is, by its first word."""

IRREGULAR_PLURALS = {"goose": "geese"}

IRREGULAR_VERBS = """
    become became become, break broke broken, bring brought brought, build built built, buy bought bought,
    drop dropped dropped, eat ate eaten, fall fell fallen, feed fed fed, feel felt felt, find found found,
    forget forgot forgotten, give gave given, grin grinned grinned, grow grew grown, hear heard heard,
    hide hid hidden, hug hugged hugged, know knew known, lend lent lent, lose lost lost,
    outwit outwitted outwitted, plan planned planned, prefer preferred preferred, rob robbed robbed,
    say said said, sell sold sold, send sent sent, show showed shown, sing sang sung,
    spot spotted spotted, steal stole stolen, swear swore sworn, think thought thought,
    throw threw thrown, wrap wrapped wrapped
"""
"""Lemma, past tense, past participle."""

GRAMMAR = {
    "sentence": """
        45 (TOP (S clause .>punct))
        10 (TOP (S (PP>obl=ARGM-TMP on>case (NP NNP.day)) ,>punct clause .>punct))
         5 (TOP (S (PP>obl=ARGM-LOC IN.place>case (NP the>det NN.place)) ,>punct clause .>punct))
        12 (TOP (S (S clause) ,>punct@second and>cc@second (S#second>conj clause) .>punct))
         9 (TOP (S (SBAR>advcl=ARGM-TMP (WHADVP>advmod when) (S clause)) ,>punct clause .>punct))
         8 (TOP (S plain (SBAR>advcl=ARGM-* IN.why>mark (S clause)) .>punct))""",
    "crossing": """
         5 (TOP (S extraposed .>punct))
         3 (TOP (S (S extraposed) ,>punct@second and>cc@second (S#second>conj clause) .>punct))
         2 (TOP (S (SBAR>advcl=ARGM-TMP (WHADVP>advmod when) (S clause)) ,>punct extraposed .>punct))""",
    "extraposed": """
         3 (NP#a>nsubj=ARG1 DT.one>det JJ.person>amod?30 NN.person)
               (VP VBD.appear (ADVP>advmod=ARGM-TMP RB.time))
               (SBAR>acl:relcl@a~a:ARG0 (WHNP>nsubj=R-ARG0 who) (S calm_action))
         1 (NP#a>nsubj=ARG1 DT.one>det NN.text) (VP VBD.spread (ADVP>advmod=ARGM-TMP RB.time))
               (PP>nmod@a about>case somebody)""",
    "clause": """
        32 pp_attachment
        28 verb_frame
        13 adverb_scope
        16 agent>nsubj=ARG0 (VP VBD.greet relative_attachment>obj=ARG1)
        12 relative_attachment>nsubj=ARG0 calm_action
        18 agent>nsubj=ARG0 (VP VBD.mention coordination_scope>obj=ARG1 time>obl=ARGM-TMP?30)
        10 coordination_scope>nsubj=ARG0 (VP VBD.please somebody>obj=ARG1 time>obl=ARGM-TMP?30)
         6 agent>nsubj=ARG0 (VP VBD.greet noun_compound>obj=ARG1 time>obl=ARGM-TMP?30)
         7 noun_compound>nsubj=ARG0 calm_action
         5 agent>nsubj=ARG0 (VP VBD.think (SBAR>ccomp=ARG1 that>mark (S clause)))
        15 plain""",
    "plain": """
         4 agent>nsubj=ARG0 calm_action
         2 one_agent>nsubj=ARG0 (VP VBZ.handle patient>obj=ARG1)
         1 agents>nsubj=ARG0 (VP VBP.handle patient>obj=ARG1)
         2 agent>nsubj=ARG0 (VP MD.any>aux not>advmod?30 (VP VB.handle patient>obj=ARG1))
         1 agent>nsubj=ARG0 (VP had>aux (VP VBN.handle patient>obj=ARG1))
         1 agent>nsubj=ARG0 (VP did>aux not>advmod (VP VB.greet one_agent>obj=ARG1))
         2 agent>nsubj=ARG1 (VP VBD.appear place>obl=ARGM-LOC?40 time>obl=ARGM-TMP?30)
         1 (NP>nsubj=ARG1 DT.one>det NN.fragile) (VP VBD.break time>obl=ARGM-TMP)
         1 (NP>nsubj=ARG1 (NP#a DT.one>det NN.fragile) (SBAR>acl:relcl~a:ARG1 (WHNP>obj=R-ARG1 which)
               (S agent>nsubj=ARG0 (VP VBD.handle)))) (VP VBD.break)
         1 agent>nsubj=ARG0 (VP VBD.break (NP>obj=ARG1 DT.one>det NN.fragile) place>obl=ARGM-LOC)
         2 (NP>nsubj:pass=ARG1 DT.one>det NN.thing)
               (VP was>aux:pass (VP VBN.handle (PP>obl:agent=ARG0 by>case one_agent)))
         2 agent>nsubj=ARG0 (VP VBD.lend (NP>obj=ARG1 DT.one>det NN.thing) (PP>obl=ARG2 IN.to>case one_agent))
         2 agent>nsubj=ARG0 (VP VBD.lend (NP>iobj=ARG2 NNP.any) patient>obj=ARG1)
         2 agent#a>nsubj=ARG0
               (VP VBD.want (S>xcomp=ARG1~a:ARG0 (VP TO.any>mark (VP VB.handle patient>obj=ARG1))))
         1 agent>nsubj=ARG1 (VP VBD.become (ADJP>xcomp=ARG2 JJ.mood) time>obl=ARGM-TMP)
         1 agent#a>nsubj=ARG0 (VP (VP VBD.handle patient>obj=ARG1) and>cc@b
               (VP#b>conj~a:ARG0 VBD.eat (NP>obj=ARG1 NN.stuff)))""",
    "calm_action": """
         3 (VP VBD.move (ADVP>advmod=ARGM-MNR RB.manner) time>obl=ARGM-TMP?30)
         2 (VP VBD.move place>obl=ARGM-LOC time>obl=ARGM-TMP?30)
         3 (ADVP>advmod=ARGM-MNR RB.manner) (VP VBD.handle patient>obj=ARG1 time>obl=ARGM-TMP?30)
         2 (VP VBD.eat (NP>obj=ARG1 NN.stuff) time>obl=ARGM-TMP?40)""",
    "agent": """
        15 somebody
         1 (NP PRP.any)""",
    "somebody": """
         4 one_agent
         1 agents""",
    "one_agent": """
        14 (NP DT.one>det NN.person)
         8 (NP DT.one>det JJ.person>amod NN.person)
         5 (NP DT.one>det NN.animal)
         3 (NP DT.one>det JJ.animal>amod NN.animal)
         6 (NP NNP.any)
         2 (NP (NP>nmod:poss the>det NN.person 's>case) NN.animal)
         1 (NP PRP$.any>nmod:poss NN.animal)""",
    "agents": """
         3 (NP DT.many>det NNS.person)
         2 (NP DT.many>det JJ.animal>amod NNS.animal)
         3 (NP CD.any>nummod NNS.animal)
         2 (NP (NP NNP.any) and>cc@b (NP#b>conj DT.one>det NN.animal))""",
    "patient": """
         8 (NP DT.one>det NN.thing)
         6 (NP DT.one>det JJ.thing>amod NN.thing)
         2 (NP DT.many>det NNS.thing)
         2 (NP CD.any>nummod JJ.thing>amod?30 NNS.thing)
         2 (NP PRP$.any>nmod:poss NN.thing)
         2 (NP (NP DT.one>det NN.vessel) (PP>nmod of>case (NP NN.stuff)))""",
    "place": "1 (PP IN.place>case (NP DT.one>det NN.place))",
    "time": "1 (PP IN.time>case (NP the>det JJ.event>amod?20 NN.event))",
}

FAMILIES = {
    "pp_attachment": Family(
        decided="noun",
        heads=("verb", "object"),
        readings=(
            """agent>nsubj=ARG0 (VP VBD{verb} (NP>obj=ARG1 DT.one>det NN{object})
            (PP>obl=ARGM-* IN{preposition}>case (NP DT.one>det NN{noun})) time>obl=ARGM-TMP?25)""",
            """agent>nsubj=ARG0 (VP VBD{verb} (NP>obj=ARG1 (NP DT.one>det NN{object})
            (PP>nmod IN{preposition}>case (NP DT.one>det NN{noun}))) time>obl=ARGM-TMP?25)""",
        ),
        structures=(
            "{verb} >obj {object}, {verb} >obl {noun} >case {preposition}",
            "{verb} >obj {object} >nmod {noun} >case {preposition}",
        ),
        rules="""
            12 verb*: sketch spot film admire       object*: sailor juggler heron giant
               preposition*: with beside            noun*: lantern telescope umbrella violin
             5 verb*: chase photograph startle hail object: goat clerk hermit badger
               preposition*: from near              noun*: tower harbor meadow cellar
             3 verb*: buy mend weigh rent           object: kettle drum wagon costume
               preposition: for at                  noun*: wedding parade picnic market""",
    ),
    "coordination_scope": Family(
        decided="last",
        heads=("first", "middle"),
        readings=(
            """(NP (NP (NP DT.one>det NN{first}) (PP>nmod of>case (NP DT.one>det NN{middle})))
            CC{conjunction}>cc@last (NP>conj DT.one>det NN{last}))""",
            """(NP (NP DT.one>det NN{first}) (PP>nmod of>case (NP (NP DT.one>det NN{middle})
            CC{conjunction}>cc@last (NP>conj DT.one>det NN{last}))))""",
        ),
        structures=(
            "{first} >nmod {middle}, {first} >conj {last} >cc {conjunction}",
            "{first} >nmod {middle} >conj {last} >cc {conjunction}",
        ),
        rules="""
            8 first*: lid picture price color  middle*: teapot wagon
              conjunction*: and or             last*: mirror statue carpet spoon
            5 first*: map song name shape      middle*: river island forest mountain
              conjunction: and                 last*: flag ship raft lagoon
            2 first*: roof door key wall       middle: barn mill chapel palace
              conjunction: and                 last*: gate fence well chimney""",
    ),
    "relative_attachment": Family(
        decided="verb",
        heads=("first", "second"),
        readings=(
            """(NP (NP#a (NP DT.one>det NN{first}) (PP>nmod of>case (NP DT.one>det NN{second})))
            (SBAR>acl:relcl~a:ARG0 (WHNP>nsubj=R-ARG0 who)
            (S (VP VBD{verb} (NP>obj=ARG1 DT.one>det NN{object})))))""",
            """(NP (NP DT.one>det NN{first}) (PP>nmod of>case (NP (NP#a DT.one>det NN{second})
            (SBAR>acl:relcl~a:ARG0 (WHNP>nsubj=R-ARG0 who)
            (S (VP VBD{verb} (NP>obj=ARG1 DT.one>det NN{object})))))))""",
        ),
        structures=(
            "{first} >nmod {second}, {first} >acl:relcl {verb} >obj {object}",
            "{first} >nmod {second} >acl:relcl {verb} >obj {object}",
        ),
        rules="""
            8 first*: servant brother teacher rival  second*: actress duke witch captain
              verb*: carry steal                     object*: crown trumpet
            5 first*: cousin barber doctor tailor    second*: queen pirate mayor wizard
              verb*: find break sell lose            object: mirror ladder compass drum
            2 first: friend uncle neighbor pupil     second*: general sculptor princess hunter
              verb*: build guard rob forget          object: cabin statue museum bonfire""",
    ),
    "noun_compound": Family(
        decided="first",
        heads=("second", "third"),
        readings=(
            "(NP DT.one>det (NML>compound NN{first}>compound NN{second}) NN{third})",
            "(NP DT.one>det NN{first}>compound (NML NN{second}>compound NN{third}))",
        ),
        structures=(
            "{third} >compound {second} >compound {first}",
            "{third} >compound {second}, {third} >compound {first}",
        ),
        rules="""
            5 first*: night winter river village   second*: train market garden bridge
              third*: guard inspector poet painter
            2 first*: silver paper copper glass    second*: button boat doll clock
              third: maker thief collector seller""",
    ),
    "verb_frame": Family(
        decided="animal",
        heads=("verb", "food"),
        readings=(
            """(NP>nsubj=ARG0 DT.one>det NN{subject})
            (ADVP>advmod=ARGM-MNR?20 RB.manner) (VP VBD{verb} (NP>iobj=ARG2 the>det NN{animal})
            (NP>obj=ARG1 NN{food}) time>obl=ARGM-TMP?25)""",
            """(NP>nsubj=ARG0 DT.one>det NN{subject})
            (ADVP>advmod=ARGM-MNR?20 RB.manner) (VP VBD{verb} (NP>obj=ARG1 the>det
            NN{animal}>compound NN{food}) time>obl=ARGM-TMP?25)""",
        ),
        structures=(
            "{verb} >nsubj {subject}, {verb} >iobj {animal}, {verb} >obj {food}",
            "{verb} >nsubj {subject}, {verb} >obj {food} >compound {animal}",
        ),
        rules="""
            8 subject*: cook nurse monk widow            verb*: serve offer
              animal*: duck rabbit goat goose            food*: soup cheese
            5 subject: butler waiter landlord aunt       verb*: feed bring promise prepare
              animal*: chicken pigeon turkey lamb        food*: pie stew bread salad
            2 subject: child twin grandmother recruit    verb*: give hand throw fetch
              animal*: dog cat pony parrot               food: food medicine candy grass""",
    ),
    "adverb_scope": Family(
        decided="adverb",
        heads=("outer", "inner"),
        readings=(
            """agent>nsubj=ARG0 (VP VBD{outer} (SBAR>ccomp=ARG1 that>mark
            (S agent>nsubj=ARG0 (VP VBD{inner}))) (ADVP>advmod=ARGM-TMP RB{adverb}))""",
            """agent>nsubj=ARG0 (VP VBD{outer} (SBAR>ccomp=ARG1 that>mark
            (S agent>nsubj=ARG0 (VP VBD{inner} (ADVP>advmod=ARGM-TMP RB{adverb})))))""",
        ),
        structures=(
            "{outer} >ccomp {inner}, {outer} >advmod {adverb}",
            "{outer} >ccomp {inner} >advmod {adverb}",
        ),
        rules="""
            5 outer*: say swear claim hear        inner*: sneeze sing dance snore
              adverb*: yesterday twice again daily
            2 outer*: know complain report boast  inner: laugh whistle yawn cheat
              adverb*: often once recently lately""",
    ),
}

INFLECTIONS = {
    "NN": ("NOUN", "Number=Sing"),
    "NNS": ("NOUN", "Number=Plur"),
    "NNP": ("PROPN", "Number=Sing"),
    "CD": ("NUM", "NumType=Card"),
    "JJ": ("ADJ", "Degree=Pos"),
    "RB": ("ADV", "_"),
    "VB": ("VERB", "VerbForm=Inf"),
    "VBP": ("VERB", "Mood=Ind|Number=Plur|Person=3|Tense=Pres|VerbForm=Fin"),
    "VBZ": ("VERB", "Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin"),
    "VBD": ("VERB", "Mood=Ind|Tense=Past|VerbForm=Fin"),
    "VBN": ("VERB", "Tense=Past|VerbForm=Part"),
}
"""UPOS and features by Penn tag."""


@cache
def function_words() -> dict[tuple[str, str], Word]:
    """Index the function words by tag and form."""
    words = {}
    for upos, xpos, feats, forms in FUNCTION_WORDS:
        for entry in forms.split():
            form, _, lemma = entry.partition("/")
            words[xpos, form] = Word(form, lemma or form, upos, xpos, feats, "")
    return words


@cache
def inflect(entry: str, tag: str) -> Word:
    """Make the word that `entry`, a lemma with or without a sense, is under `tag`."""
    if (tag, entry) in function_words():
        return function_words()[tag, entry]
    lemma, _, sense = entry.partition(".")
    upos, feats = INFLECTIONS[tag]
    sense = f"{lemma}.{sense or '01'}" if upos == "VERB" else ""
    return Word(_spell(lemma, tag), lemma, upos, tag, feats, sense)


@cache
def word_list(name: str) -> tuple[Word, ...]:
    """Return the words of a list such as ``NN.person``, each as many times as its frequency asks.

    A function word is a list of its own.
    """
    tag, _, kind = name.partition(".")
    if literal := [word for (_, form), word in function_words().items() if form == name]:
        return tuple(literal)
    if name in FUNCTION_LISTS:
        return tuple(function_words()[tag, form] for form in FUNCTION_LISTS[name].split())
    if name == "NNP.any":
        rare = ["".join(parts) for parts in product(*(parts.split() for parts in NAME_PARTS))]
        return _by_rank(NAMES, tag, 60) + tuple(inflect(form, tag) for form in rare)
    if name == "CD.any":
        return _by_rank(NUMERALS, tag, 20) + tuple(inflect(str(number), tag) for number in RARE_NUMBERS)
    if name == "NNP.day":
        return _by_rank(DAYS, tag)
    lists = {"N": NOUNS, "V": VERBS, "J": ADJECTIVES, "R": ADVERBS}[tag[0]]
    return _by_rank(lists[kind], tag)


def _by_rank(entries: str, tag: str, scale: int = 1) -> tuple[Word, ...]:
    """Repeat each word in inverse proportion to its rank."""
    return tuple(
        inflect(entry, tag)
        for rank, entry in enumerate(entries.split())
        for _ in range(scale * (120 // (rank + 3)))
    )


def _spell(lemma: str, tag: str) -> str:
    if tag in ("VBD", "VBN"):
        return _irregular_verbs().get(lemma, {}).get(tag) or _soften(lemma).removesuffix("e") + "ed"
    if tag == "NNS" and lemma in IRREGULAR_PLURALS:
        return IRREGULAR_PLURALS[lemma]
    if tag in ("NNS", "VBZ"):
        return _soften(lemma) + ("es" if re.search("(s|x|z|ch|sh|[^aeo]y)$", lemma) else "s")
    return lemma


def _soften(lemma: str) -> str:
    """Turn the last letter of ``carry`` into that of ``carried``."""
    return re.sub("([^aeo])y$", r"\1i", lemma)


@cache
def _irregular_verbs() -> dict[str, dict[str, str]]:
    rows = (row.split() for row in IRREGULAR_VERBS.split(","))
    return {lemma: {"VBD": past, "VBN": participle} for lemma, past, participle in rows}
