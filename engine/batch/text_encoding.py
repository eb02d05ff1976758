"""Detect the encoding of a table: UTF-8 and UTF-16 first, then encodings that spreadsheets of many countries write.

A table may be valid in several encodings and too short for language statistics, so the words of each reading are
scored: letters of two scripts in one word, symbols inside of words and rare characters count against it. If the scores
do not decide, charset-normalizer may; if it does not either, the encoding stays unknown.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from contextlib import suppress
from functools import cache
from typing import Final

from engine.batch.table import TableError
from engine.safe_file_io import NotTextError, decode_text
from engine.text_sanitizing import shown

ENCODINGS: Final = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16 (little-endian)",
    "utf-16-be": "UTF-16 (big-endian)",
    "cp1252": "Windows-1252",
    "cp1250": "Windows-1250",
    "cp1251": "Windows-1251",
    "cp1253": "Windows-1253",
    "cp1254": "Windows-1254",
    "cp1255": "Windows-1255",
    "cp1256": "Windows-1256",
    "koi8-r": "KOI8-R",
    "mac-roman": "Mac Roman",
    "gb18030": "GB18030",
    "big5": "Big5",
    "cp932": "Shift-JIS",
    "euc-jp": "EUC-JP",
    "cp949": "EUC-KR",
}
"""The recognized encodings: Python's name and the common name. In a tie, the earlier one wins."""

_UTF_16_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MIN_ZEROS: Final = 0.01
_SAMPLE_BYTES: Final = 60_000
_WORD: Final = re.compile(r"[^\x00-\x26\x28-\x40\x5b-\x60\x7b-\x7f\s]+")
_LATIN: Final = ("cp1252", "cp1250", "cp1254", "mac-roman")
_LATIN_SHARE: Final = 0.5
_LEAD: Final = 0.1
"""The minimum lead in plausibility over the next encoding, in a text of many letters."""
_LEAD_OF_ONE_LETTER: Final = 0.9
_ALPHABETS: Final = frozenset({"LATIN", "CYRILLIC", "GREEK", "HEBREW", "ARABIC"})
_KANA: Final = frozenset({"HIRAGANA", "KATAKANA"})
_CYRILLIC: Final = frozenset("оеаинтсрвлкмдпу")
_JAPANESE: Final = frozenset(
    "日一人年大十二本中長出三時行見月後前生五間上東四今金九入学高円子外八六下来気小七山話女北午百書先名川"
    "千水半男西電校語土木聞食車何南万毎白天母火右読友左休父雨題数空色雪"
)
_FREQUENT: Final = {
    "cp1251": _CYRILLIC,
    "koi8-r": _CYRILLIC,
    "cp1253": frozenset("αοιετσνηυρπκμλόίάές"),
    "cp1255": frozenset("יוהלארתבשמנםדע"),
    "cp1256": frozenset("اليمنوتربةدعسف"),
    "gb18030": frozenset(
        "的一是不了在人有我他这中大来上个国和地到说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行"
        "所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者"
        "意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见"
        "被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名"
        "真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期"
    ),
    "big5": frozenset(
        "的一是不了在人有我他這中大來上個國和地到說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行"
        "所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日者意"
        "無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被"
        "利什二等產或新己制身果加西月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論"
        "處走義各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直"
    ),
    "cp932": _JAPANESE,
    "euc-jp": _JAPANESE,
    "cp949": frozenset(
        "이다가는의에을를은한하고기로지사도서리나인그있정대시자어과수해라아보일들부장제주만여원구스전상게무동"
        "안조경비성공세미신소적영우오계화요거것면적국분문생들할된위모양내마선니습까데음려연년학실방진단중결때"
        "작발용물관람눈녕답질말각본와"
    ),
}
"""Letters by which a language is recognized, by the encoding in which it is written."""
_COMMON: Final = {
    # The codec that has the common characters of a larger one, and the first bytes of its common letters.
    "gb18030": ("gb2312", 0xB0, 0xD7),
    "big5": ("big5", 0xA4, 0xC6),
    "cp932": ("shift_jis", 0x88, 0x98),
    "euc-jp": ("euc_jp", 0xB0, 0xCF),
    "cp949": ("euc_kr", 0xB0, 0xC8),
}
_ODD_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Lm", "Mn", "Sk"})
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f]")
_JOINERS: Final = frozenset("'’‘·–—…-")
_LONE_WIDE: Final = re.compile(r"[A-Za-z][^\x00-\x7f][A-Za-z]")
_CAPITAL_INSIDE: Final = re.compile("[ae]E|eA|EEe")
_ALPHABET_OF: Final = {"cp1250": ("őű", "áéíóöőúüű"), "cp1254": ("ğış", "çğıöşüâîû\u0307")}
"""Letters of Hungarian and Turkish: those that Windows-1252 lacks, and all beyond ASCII."""


class EncodingError(TableError):
    """The encoding of a text is unknown, or is not the given one."""


def decode_table(content: bytes, name: str, encoding: str | None = None) -> tuple[str, str]:
    """Decode the content of a table in a text format. Line ends are unchanged.

    Args:
        content: The content of the file.
        name: The file's name for messages.
        encoding: Its encoding by Python's or its common name; None to detect it.

    Returns:
        The text, and the common name of the encoding; empty for UTF-8.

    Raises:
        EncodingError: The encoding cannot be detected, or is not the given one.
        TableError: The file is not text.
    """
    if encoding is not None:
        return _decode_as(content, name, encoding)
    if not content.startswith(_UTF_16_MARKS) and (codec := _utf_16_without_mark(content[:_SAMPLE_BYTES])):
        with suppress(UnicodeDecodeError):
            text = content.decode(codec)
            if not _CONTROL.search(text):
                return text, ENCODINGS[codec]
    try:
        text = decode_text(content, keep_line_ends=True)
    except NotTextError as error:
        if content.startswith(_UTF_16_MARKS):
            raise _unreadable(name, f"is damaged: {error}") from None
        return _decode_legacy(content, name)
    if "\0" in text:
        raise _unreadable(name, "is not text")
    return text, ENCODINGS["utf-16"] if content.startswith(_UTF_16_MARKS) else ""


def _decode_as(content: bytes, name: str, encoding: str) -> tuple[str, str]:
    wanted = encoding.strip().casefold()
    codec = next((codec for codec, label in ENCODINGS.items() if wanted in {codec, label.casefold()}), wanted)
    codec = {"utf-8": "utf-8-sig"}.get(codec, codec)
    try:
        text = content.decode(codec)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise EncodingError(
            f"{name}, line {line}: The text is not in the encoding {shown(encoding, 40)}.", "Choose another encoding."
        ) from None
    except (LookupError, ValueError):
        known = ", ".join(ENCODINGS)
        raise EncodingError(f'There is no text encoding "{shown(encoding, 40)}".', f"Choose one of: {known}.") from None
    if codec == "utf-8-sig":
        return text, ""
    return text.removeprefix("\ufeff"), ENCODINGS.get(codec, codec)


def _utf_16_without_mark(sample: bytes) -> str | None:
    """Detect UTF-16 without a byte order mark, in which every other byte of ASCII characters is zero."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if min(even, odd) > 0 or max(even, odd) < _MIN_ZEROS * len(sample):
        return None
    return "utf-16-be" if even else "utf-16-le"


def _decode_legacy(content: bytes, name: str) -> tuple[str, str]:
    if b"\0" in content:
        raise _unreadable(name, "is not text")
    sample = _sample(content)
    readings: dict[str, str] = {}
    for codec in list(ENCODINGS)[4:]:
        with suppress(UnicodeDecodeError):
            content.decode(codec)
            readings[codec] = sample.decode(codec)
    best = _most_plausible(readings)
    codec = best[0] if len({readings[codec] for codec in best}) == 1 else _by_language(sample, best)
    if codec is None:
        candidates = f" It may be {' or '.join(ENCODINGS[codec] for codec in best[:3])}." if best else ""
        raise EncodingError(
            f"{name}: The text is not UTF-8, and its encoding cannot be detected.{candidates}",
            "Choose the encoding, or save the table as UTF-8 or as an Excel workbook.",
        )
    return content.decode(codec), ENCODINGS[codec]


def _most_plausible(readings: dict[str, str]) -> list[str]:
    """The encodings whose readings look most like words; several in case of a tie."""
    if not readings:
        return []
    scores = {codec: score for codec, text in readings.items() if (score := _plausibility(text, codec)) is not None}
    top = max(scores.values(), default=0.0)
    lead = max(_LEAD, _LEAD_OF_ONE_LETTER / max(sum(not char.isascii() for char in text) for text in readings.values()))
    best = [codec for codec in readings if codec in scores and scores[codec] > top - lead and top > 0]
    if not best or not all(codec in _LATIN for codec in best):
        return best
    for codec in best:
        # These two differ from Windows-1252 in few letters, so they count only if no other letters occur.
        own_letters, alphabet = _ALPHABET_OF.get(codec, ("", ""))
        letters = {char for char in readings[codec].lower() if char.isalpha() and not char.isascii()}
        if letters & set(own_letters) and letters <= set(alphabet):
            return [codec]
    return best[:1]


def _by_language(sample: bytes, candidates: list[str]) -> str | None:
    """The encoding in which charset-normalizer recognizes a language; None if there is none."""
    from charset_normalizer import from_bytes

    matches = from_bytes(sample, cp_isolation=candidates, preemptive_behaviour=False)
    found = sorted(((match.coherence, match.encoding.replace("_", "-")) for match in matches), reverse=True)
    is_clear = bool(found) and found[0][0] > _LEAD + (found[1][0] if len(found) > 1 else 0.0)
    return found[0][1] if is_clear else None


def _sample(content: bytes) -> bytes:
    """Whole lines with non-ASCII bytes, up to a limit."""
    lines: list[bytes] = []
    size = 0
    for line in content.split(b"\n"):
        if not line.isascii():
            lines.append(line)
            size += len(line)
            if size > _SAMPLE_BYTES:
                break
    return b"\n".join(lines)


def _plausibility(text: str, codec: str) -> float | None:
    """How much a reading looks like words, up to 2; None without a letter of the encoding's own script."""
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    letters = [char for word in words for char in word.lower() if char.isalpha() and not char.isascii()]
    if codec in _LATIN:
        frequent = _LATIN_SHARE if codec != "mac-roman" else _LATIN_SHARE - _LEAD
    else:
        own = [char for char in letters if _script(char) not in {"LATIN", "FEMININE", "MASCULINE", "MICRO"}]
        if not own:
            return None
        frequent = sum(char in _FREQUENT[codec] or _script(char) in _KANA for char in own) / len(letters)
    return 1 + frequent - sum(_oddness(word, codec) for word in words) * 2 / len(words)


def _oddness(word: str, codec: str) -> float:
    """How unusual a word is, from 0 to 1, as words in a wrong encoding are."""
    letters = [char for char in word if char.isalpha()]
    scripts = {_script(char) for char in letters}
    if any(unicodedata.category(char) in _ODD_CATEGORIES for char in word) or "HALFWIDTH" in scripts:
        return 1.0
    if codec in _COMMON:
        return _east_asian_oddness(word, scripts, codec)
    if len(scripts & _ALPHABETS) > 1 or _CAPITAL_INSIDE.search(_case_pattern(word)) or _has_symbol_inside(word):
        return 1.0
    if scripts == {"LATIN"} and len(letters) > 1 and not any(char.isascii() and char.islower() for char in letters):
        return 0.5 if any(char.isascii() for char in letters) else 1.0
    return 0.1 if len(letters) > 2 and word.isupper() else 0.0


def _east_asian_oddness(word: str, scripts: set[str], codec: str) -> float:
    is_japanese = codec in {"cp932", "euc-jp"}
    if _LONE_WIDE.search(word) or (scripts & _KANA and not is_japanese) or ("HANGUL" in scripts) != (codec == "cp949"):
        return 1.0
    base, low, high = _COMMON[codec]
    letters = [char for char in word if char.isalpha() and not char.isascii() and _script(char) not in _KANA]
    rare = 0
    for char in letters:
        encoded = char.encode(base, "replace")
        rare += len(encoded) != 2 or not low <= encoded[0] <= high
    return min(2 * rare / len(letters), 1.0) if letters else 0.0


def _has_symbol_inside(word: str) -> bool:
    inside = zip(word, word[1:], word[2:], strict=False)
    return any(
        before.isalpha() and after.isalpha() and char not in _JOINERS and (not char.isalpha() or char in "ªº")
        for before, char, after in inside
    )


def _case_pattern(word: str) -> str:
    """The word's letters as `a`, `A` (ASCII), `e`, `E` (others)."""
    return "".join(
        ("A" if char.isascii() else "E") if char.isupper() else ("a" if char.isascii() else "e")
        for char in word
        if char.isalpha()
    )


@cache
def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0].partition("-")[0]


def _unreadable(name: str, what: str) -> TableError:
    return TableError(f"{name}: The file {what}.", "Save the table again as UTF-8 or as an Excel workbook.")
