"""Long and very short tables in the encodings that spreadsheets of many countries write."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import read_table
from engine.batch.table import TableError
from engine.batch.text_encoding import ENCODINGS, decode_table

_TEXTS = {
    "cp1252": [
        "name;ville\nRené;Orléans\n",
        "topic\ncafé\n",
        "topic,words\nÜber die Brücke,5\nStraße,3\n",
        "name,price\nMüller,5 €\n",
        "task\nDescribe “rain” — in one sentence.\nIt’s fine…\n",
        "text\nniño, año, señor\n",
        "text\nSmörgåsbord på ön\n",
        "q\nÇa va où été à l’hôtel?\n",
        "name,temp\nA,20°C\nB,5²\n",
        "a\nSão Paulo é ótimo, coração\n",
        "a\nÞað er gott veður á Íslandi\n",
    ],
    "cp1250": ["text\nZażółć gęślą jaźń\n", "jmeno\nPříliš žluťoučký kůň\n", "név\nÁrvíztűrő tükörfúrógép\n"],
    "cp1251": [
        "текст\nпривет мир\nкак дела\n",
        "topic,words\nДождь,5\nСнег,3\n",
        "Вопрос;Ответ\nКто написал?;Толстой\n",
    ],
    "koi8-r": ["текст\nпривет мир\nкак дела\n"],
    "cp1253": ["κείμενο\nκαλημέρα κόσμε\n"],
    "cp1254": ["metin\nİstanbul'da yağmur yağıyor, güneş şimdi\n", "soru,cevap\nBaşkent neresi?,Ankara\n"],
    "cp1255": ["text\nשלום עולם\n", "שאלה,תשובה\nמה צבע השמיים,כחול\n"],
    "cp1256": ["text\nمرحبا بالعالم\n", "السؤال,الجواب\nما لون السماء,أزرق\n"],
    "mac-roman": ["topic\ncafé\nniño\n"],
    "gb18030": ["主题,字数\n下雨,5\n下雪,3\n", "编号,问题\n1,为什么天空是蓝色的？\n", "姓名\n张三\n李四\n"],
    "big5": ["主題,字數\n下雨,5\n下雪,3\n", "編號,問題\n1,為什麼天空是藍色的？\n"],
    "cp932": ["題,数\n雨,5\n雪,3\n", "topic\nこんにちは世界\n", "topic\nカタカナとひらがな、漢字を書いてください。\n"],
    "euc-jp": ["topic\nこんにちは世界\n", "質問,答え\n空は何色ですか。,青\n"],
    "cp949": ["주제,수\n비,5\n눈,3\n", "topic\n안녕하세요 세계\n"],
    "utf-16": ["topic,words\nrain,5\n", "主题\n下雨\n"],
    "utf-16-le": ["topic,words\nrain,5\n", "topic\n下雨\n"],
    "utf-16-be": ["topic,words\nrain,5\n"],
}


@pytest.mark.parametrize(("codec", "text"), [(codec, text) for codec, texts in _TEXTS.items() for text in texts])
@pytest.mark.parametrize("times", [1, 30])
def test_an_encoding_is_recognized_and_named(codec: str, text: str, times: int):
    content = (text * times).encode(codec)
    read, label = decode_table(content, "t.csv")
    assert read == text * times
    # Windows-1250 and others share most letters, so only the text is compared.
    assert label in {
        name for known, name in ENCODINGS.items() if (text * times).encode(known, "replace") == content
    } | {ENCODINGS[codec]}


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_utf_8_is_not_mentioned(mark: bytes):
    assert decode_table(mark + "é, 日本\r\n".encode(), "t.csv") == ("é, 日本\r\n", "")


@pytest.mark.parametrize(
    ("codec", "text"), [("gb18030", "topic\n琉璃\n"), ("cp1251", "name\nЖук\n"), ("koi8-r", "фьючерс\n")]
)
def test_ambiguous_encoding_is_not_guessed(codec: str, text: str):
    with pytest.raises(TableError) as caught:
        decode_table(text.encode(codec), "t.csv")
    for expected in ("t.csv", "not UTF-8", ENCODINGS[codec], "Excel workbook"):
        assert expected in str(caught.value)
    assert decode_table(text.encode(codec), "t.csv", codec)[0] == text


@pytest.mark.parametrize("name", ["cp1251", "Windows-1251", "windows-1251", " CP1251 "])
def test_given_encoding_is_used(name: str):
    assert decode_table("Жук".encode("cp1251"), "t.csv", name)[0] == "Жук"


def test_wrong_or_unknown_encoding_is_reported():
    with pytest.raises(TableError, match=r"t\.csv, line 2: .*UTF-8"):
        decode_table("a\né".encode("cp1252"), "t.csv", "UTF-8")
    with pytest.raises(TableError, match='no text encoding "klingon"'):
        decode_table(b"a", "t.csv", "klingon")
    for codec in ("base64", "hex", "rot13", "zip", ""):
        with pytest.raises(TableError, match="no text encoding"):
            decode_table(b"a", "t.csv", codec)


@pytest.mark.parametrize("content", [b"a,b\n\x00\x01\x02,3\n", b"\xff\xfea", bytes(range(256))])
def test_binary_file_is_reported(content: bytes):
    with pytest.raises(TableError) as caught:
        decode_table(content, "t.csv")
    assert str(caught.value).startswith("t.csv: The ")
    assert "\n" not in str(caught.value)


def test_notes_say_how_the_table_was_read(tmp_path: Path):
    file = tmp_path / "t.csv"
    file.write_bytes("name;ville\nRené;Orléans\n".encode("cp1252"))
    table = read_table(file)
    assert (table.rows[0], table.notes) == ({"name": "René", "ville": "Orléans"}, ("Read as Windows-1252.",))
    file.write_bytes("name\tn\r\n雨\t1\r\n".encode("utf-16"))
    assert (read_table(file).rows, read_table(file).notes) == (({"name": "雨", "n": "1"},), ("Read as UTF-16.",))
    lines = tmp_path / "t.jsonl"
    lines.write_bytes('{"name": "雨"}\r\n'.encode("utf-16"))
    assert read_table(lines).rows == ({"name": "雨"},)
    assert read_table(file, encoding="utf-16").notes == ("Read as UTF-16.",)
