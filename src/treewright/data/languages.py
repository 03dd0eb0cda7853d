"""The treebanks of Universal Dependencies: languages, their codes in file names, repositories."""

import difflib
import re

from treewright.errors import InputError, quote

REPOSITORY = re.compile(r"UD_([A-Za-z]+(?:_[A-Za-z]+)*)-([A-Za-z0-9]+)")
CODE = re.compile(r"[a-z]{2,3}")

_TABLE = """
Abaza abq ATB
Abkhaz ab AbNC
Afrikaans af AfriBooms
Akkadian akk PISANDUB RIAO
Akuntsu aqz TuDeT
Albanian sq STAF TSA
Alemannic gsw DIVITAL UZH
Amharic am ATT
Ancient_Greek grc Perseus PROIEL PTNK
Ancient_Hebrew hbo PTNK
Apurina apu UFPA
Arabic ar NYUAD PADT PUD
Armenian hy ArmTDP BSUT
Assyrian aii AS
Azerbaijani az TueCL
Bambara bm CRB
Basque eu BDT
Bavarian bar MaiBaam
Beja bej Autogramm NSC
Belarusian be HSE
Bengali bn BRU
Bhojpuri bho BHTB
Bokota sab ChibErgIS
Bororo bor BDT
Breton br KEB
Bulgarian bg BTB
Buryat bxr BDT
Cantonese yue HK
Cappadocian cpg AMGiC TueCL
Catalan ca AnCora
Cebuano ceb GJA
Central_Kurdish ckb Mukri
Chinese zh Beginner CFL GSD GSDSimp HK PatentChar PUD
Chintang ctn CTNTB
Chukchi ckt HSE
Classical_Armenian xcl CAVaL
Classical_Chinese lzh Kyoto TueCL
Coptic cop Bohairic Scriptorium
Croatian hr SET
Czech cs CAC CLTT FicTree PDT PDTC Poetry PUD
Danish da DDT
Dutch nl Alpino LassySmall
Egyptian egy UJaen
English en Atis CHILDES CTeTex ESL ESLSpok EWT GENTLE GUM GUMReddit LinES LittlePrince ParTUT Pronouns PUD
Erzya myv JR
Esperanto eo Cairo Prago
Estonian et EDT EWT
Faroese fo FarPaHC OFT
Finnish fi FTB OOD PUD TDT
French fr ALTS FQB FTB GSD ParisStories ParTUT PoitevinDIVITAL PUD Rhapsodie Sequoia Spoken
Frisian_Dutch qfn Fame
Galician gl CTG PUD TreeGal
Georgian ka GLC GNC
German de GSD HDT LIT PUD
Gheg aln GPS
Gothic got PROIEL
Greek el Cretan GDT GUD Lesbian Messinian
Guajajara gub TuDeT
Guarani gn OldTuDeT
Gujarati gu GujTB
Gwichin gwi TueCL
Haitian_Creole ht Adolphe Autogramm
Hausa ha NorthernAutogramm SouthernAutogramm WesternAutogramm
Hebrew he HTB IAHLTknesset IAHLTwiki
Highland_Puebla_Nahuatl azz ITML
Hindi hi HDTB PUD
Hindi_English qhe HIENCS
Hittite hit HitTB
Hungarian hu Szeged
Icelandic is GC IcePaHC Modern PUD
Ika arh ChibErgIS
Indonesian id CSUI GSD PUD
Irish ga Cadhan IDT TwittIrish
Italian it ISDT KIParlaForest MarkIT Old ParlaMint ParTUT PoSTWITA PUD TWITTIRO Valico VIT
Japanese ja BCCWJ BCCWJLUW GSD GSDLUW KTC Modern PUD PUDLUW
Javanese jv CSUI
Kaapor urb TuDeT
Kangri xnr KDTB
Karelian krl KKPP
Karo arr TuDeT
Kazakh kk KTB
Khoekhoe naq KDT
Khunsari kfm AHA
Kiche quc IU
Komi_Permyak koi UH
Komi_Zyrian kpv IKDP Lattice
Korean ko GSD Kaist KSL LittlePrince PUD
Kurmanji kmr MG
Kyrgyz ky KTMU TueCL
Latgalian ltg Cairo
Latin la CIRCSE ITTB LLCT Perseus PROIEL UDante
Latvian lv Cairo LVTB
Ligurian lij GLT
Lithuanian lt ALKSNIS HSE
Livvi olo KKPP
Low_Saxon nds LSDC
Luxembourgish lb LuxBank
Macedonian mk MTB
Madi jaa Jarawara
Maghrebi_Arabic_French qaf Arabizi
Makurap mpu TuDeT
Malayalam ml UFAL
Maltese mt MUDT
Manx gv Cadhan
Marathi mr UFAL
Mbya_Guarani gun Dooley Thomas
Middle_French frm ALTM PROFITEROLE
Moksha mdf JR
Munduruku myu TuDeT
Naga nmf Suansu
Naija pcm NSC
Nayini nyq AHA
Neapolitan nap RB
Nenets yrk Tundra
Nheengatu yrl CompLin
North_Sami sme Giella
Northern_Kurdish kmr Kurmanji
Northwest_Gbaya gya Autogramm
Norwegian no Bokmaal Nynorsk NynorskLIA
Occitan oc TTB
Odia or ODTB
Old_Church_Slavonic cu PROIEL
Old_East_Slavic orv Birchbark RNC Ruthenian TOROT
Old_English ang Cairo
Old_French fro ALTM PROFITEROLE SRCMF
Old_Irish sga DipSGG DipWBG
Old_Occitan pro CorAG
Old_Russian orv
Old_Turkish otk Clausal Tonqq
Ottoman_Turkish ota BOUN DUDU
Pashto ps Sikaram
Paumari pad TueCL
Persian fa PerDT Seraji
Pesh pay ChibErgIS
Phrygian xpg KUL
Polish pl LFG MPDT PDB PUD SZ
Pomak qpm Philotis
Portuguese pt Bosque CINTIL DANTEStocks GSD PetroGold Porttinari PUD
Romanian ro ArT MolDoRo Nonstandard RRT SiMoNERo TueCL
Russian ru GSD Poetry PUD SynTagRus Taiga
Sanskrit sa UFAL Vedic
Scottish_Gaelic gd ARCOSG
Serbian sr SET
Shanghainese wuu ShUD
Sicilian scn STB
Sindhi sd Isra
Sinhala si STB
Skolt_Sami sms Giellagas
Slovak sk SNK
Slovenian sl SSJ SST
Soi soj AHA
South_Levantine_Arabic ajp MADAR
Southern_Kurdish sdh Garrusi
Spanish es AnCora COSER GSD PUD
Spanish_Sign_Language ssp LSE
Swedish sv LinES Old PUD SweLL Talbanken
Swedish_Sign_Language swl SSLC
Swiss_German gsw
Tagalog tl TRG Ugnayan
Tamil ta MWTT TTB
Tatar tt NMCTT
Teko eme TuDeT
Telugu te MTG
Telugu_English qte TECT
Thai th PUD TUD
Tswana tn Popapolelo
Tupinamba tpn TuDeT
Turkish tr Atis BOUN FrameNet GB IMST Kenet Penn PUD Tourism TueCL
Turkish_English qti BUTR
Turkish_German qtd SAGT
Ukrainian uk IU ParlaMint
Umbrian xum IKUVINA
Upper_Sorbian hsb UFAL
Urdu ur UDTB
Uyghur ug UDT
Uzbek uz TueCL UT UzUDT
Veps vep VWT
Vietnamese vi TueCL VTB
Warlpiri wbp UFAL
Welsh cy CCG
Western_Armenian hyw ArmTDP
Western_Sierra_Puebla_Nahuatl nhi ITML
Wolof wo WTB
Xavante xav XDT
Xibe sjo XDT
Yakut sah YKTDT
Yiddish yi YiTB
Yoruba yo YTB
Yupik ess SLI
Zaar say Autogramm
"""
_ROWS = [line.split() for line in _TABLE.split("\n") if line]

CODES = {language: code for language, code, *_ in _ROWS}
"""The code of each language, as ``CODES["English"] == "en"``."""

REPOSITORIES = {
    f"{code}_{treebank.lower()}": f"UD_{language}-{treebank}"
    for language, code, *treebanks in _ROWS
    for treebank in treebanks
}
"""The repository behind each short name, as ``REPOSITORIES["en_ewt"] == "UD_English-EWT"``."""

TRAIN_PIECES = {
    "UD_Czech-PDT": ("c", "l", "m", "v"),
    "UD_German-HDT": ("a-1", "a-2", "b-1", "b-2"),
    "UD_Russian-SynTagRus": ("a", "b", "c"),
    "UD_Russian-Taiga": ("a", "b", "c", "d", "e"),
}
"""Repositories whose train part is too large for one file of GitHub, and the pieces that make it up."""


def resolve_name(name: str, code: str | None) -> tuple[str, str]:
    """Return the repository and the beginning of its file names."""
    repository = REPOSITORIES.get(name, name)
    matched = REPOSITORY.fullmatch(repository)
    if not matched:
        expected = "expected a name such as 'UD_English-EWT' or 'en_ewt'"
        raise InputError(f"treebank is {quote(name)}; {expected}{suggest_names(name)}")
    language, treebank = matched.groups()
    if code is None and language not in CODES:
        remedy = "give the code in its file names (code= in Python, --code) to fetch it nevertheless"
        raise InputError(f"language {quote(language)} is not known; {remedy}{suggest_names(name)}")
    if code is not None and not CODE.fullmatch(code):
        raise InputError(f"code is {quote(code)}; expected two or three small letters, such as 'en'")
    return repository, f"{code or CODES[language]}_{treebank.lower()}-ud"


def suggest_names(name: str) -> str:
    """Return a question that lists the known names like `name`; nothing if `name` is known itself."""
    known = {each.lower(): each for each in (*REPOSITORIES, *REPOSITORIES.values())}
    close = [known[each] for each in difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.75)]
    if name in close:
        return ""
    return f"; did you mean {' or '.join(close)}?" if close else ""


def train_pieces(repository: str, name: str) -> list[str]:
    """Return the files that make up `name` if it is a train part that is kept in pieces."""
    stem = name.removesuffix(".conllu")
    pieces = TRAIN_PIECES.get(repository, ()) if stem.endswith("-train") else ()
    return [f"{stem}-{piece}.conllu" for piece in pieces]
