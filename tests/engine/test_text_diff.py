from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import text_diff
from engine.text_diff import Kind, differences, equal_blocks

TEXTS = st.text(st.sampled_from("ab \n.é\u2028\ud83d"), max_size=60)


def shown(first: str, second: str) -> str:
    marks = {Kind.EQUAL: "{}", Kind.DELETE: "[-{}-]", Kind.INSERT: "{{+{}+}}"}
    return "".join(marks[span.kind].format(span.text) for span in differences(first, second))


def joined(spans: list, left_out: Kind) -> str:
    return "".join(span.text for span in spans if span.kind is not left_out)


def test_only_a_changed_word_is_marked():
    assert shown("The tide is high.", "The tide is low.") == "The tide is [-high-]{+low+}."


def test_a_new_sentence_is_one_change():
    assert shown("One.\nAll cats purr.\n", "One.\nMost dogs bark.\n") == "One.\n[-All cats purr-]{+Most dogs bark+}.\n"


HARBOR = "The harbor was quiet before dawn. Gulls slept on the posts."
MARIA = "Maria untied the boat and pushed off without a word."
SWELL = "Out beyond the breakwater, the swell returned, and the lamp swung."
NOON = "By noon she would be back, or she would not be back at all."


def paragraphs(*texts: str) -> str:
    return "\n\n".join(texts)


def test_merged_paragraphs_are_matched_by_content_although_all_were_edited():
    before = paragraphs(HARBOR, MARIA, SWELL, NOON)
    merged = paragraphs(
        f"{HARBOR.replace('quiet', 'silent')} {MARIA.replace('word', 'sound')}", SWELL.replace("lamp", "light"), NOON
    )
    assert shown(before, merged) == paragraphs(
        HARBOR.replace("quiet", "[-quiet-]{+silent+}") + "[-\n\n-]{+ +}" + MARIA.replace("word", "[-word-]{+sound+}"),
        SWELL.replace("lamp", "[-lamp-]{+light+}"),
        NOON,
    )


def test_a_split_paragraph_is_matched_by_content_although_others_were_edited():
    before = paragraphs(f"{HARBOR} {MARIA}", SWELL, NOON)
    split = paragraphs(HARBOR, MARIA.replace("word", "sound"), SWELL.replace("lamp", "light"), NOON)
    assert shown(before, split) == paragraphs(
        HARBOR + "[- -]{+\n\n+}" + MARIA.replace("word", "[-word-]{+sound+}"),
        SWELL.replace("lamp", "[-lamp-]{+light+}"),
        NOON,
    )


def test_a_moved_paragraph_is_removed_and_added_as_a_whole_and_the_others_stay():
    before = paragraphs(HARBOR, MARIA, SWELL, NOON, "The end.")
    moved = paragraphs(HARBOR, SWELL, NOON, MARIA, "The end.")
    assert shown(before, moved) == (f"{HARBOR}\n\n[-{MARIA}\n\n-]{SWELL}\n\n{NOON}\n{{+\n{MARIA}\n+}}\nThe end.")


def test_small_words_that_two_sentences_share_by_chance_do_not_split_the_change():
    assert shown(f"{MARIA} Then.", f"{SWELL} Then.") == f"[-{MARIA[:-1]}-]{{+{SWELL[:-1]}+}}. Then."


PARAGRAPHS = st.lists(st.sampled_from((HARBOR, MARIA, SWELL, NOON, "", "\n")), max_size=8)


@given(PARAGRAPHS, PARAGRAPHS, st.sampled_from((" ", "\n", "\n\n")), st.sampled_from((" ", "\n", "\n\n")))
def test_paragraphs_however_they_are_joined_are_restored(one: list, other: list, glue: str, other_glue: str):
    first, second = glue.join(one), other_glue.join(other)
    spans = differences(first, second)
    assert joined(spans, Kind.INSERT) == first
    assert joined(spans, Kind.DELETE) == second


def test_a_deleted_and_an_inserted_line():
    assert shown("a\nb\nc\n", "a\nc\nd\n") == "a\n[-b\n-]c\n{+d\n+}"


def test_equal_and_empty_texts():
    assert differences("", "") == []
    assert shown("same", "same") == "same"
    assert shown("", "new") == "{+new+}"
    assert shown("old", "") == "[-old-]"


def test_non_ascii_letters_form_words():
    assert shown("die Größe", "die Grüße") == "die [-Größe-]{+Grüße+}"


@given(TEXTS, TEXTS)
def test_the_joined_spans_are_both_texts(first: str, second: str):
    spans = differences(first, second)
    assert joined(spans, Kind.INSERT) == first
    assert joined(spans, Kind.DELETE) == second
    assert all(span.text for span in spans)
    assert all(one.kind is not other.kind for one, other in itertools.pairwise(spans))


@given(st.lists(st.integers(0, 5), max_size=40), st.lists(st.integers(0, 5), max_size=40), st.integers(1, 50))
def test_blocks_are_equal_and_in_order_however_little_is_compared_exactly(first: list, second: list, cells: int):
    usual = text_diff.EXACT_CELLS
    text_diff.EXACT_CELLS = cells  # pyright: ignore[reportConstantRedefinition] - long sequences in small
    try:
        blocks = equal_blocks(first, second)
    finally:
        text_diff.EXACT_CELLS = usual  # pyright: ignore[reportConstantRedefinition]
    place, other_place = 0, 0
    for start, other_start, length in blocks:
        assert start >= place
        assert other_start >= other_place
        assert length > 0
        assert first[start : start + length] == second[other_start : other_start + length]
        place, other_place = start + length, other_start + length


@given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
def test_short_sequences_share_as_much_as_they_can(first: list, second: list):
    longest = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, j in itertools.product(range(len(first)), range(len(second))):
        best = max(longest[i][j + 1], longest[i + 1][j])
        longest[i + 1][j + 1] = longest[i][j] + 1 if first[i] == second[j] else best
    assert sum(length for _, _, length in equal_blocks(first, second)) == longest[-1][-1]


def test_long_sequences_are_split_at_unique_elements():
    first, second = list(range(20_000)), [-1, *range(5, 20_000), -2]
    second[10_000] = -3
    assert equal_blocks(first, second) == [(5, 1, 9_999), (10_005, 10_001, 9_995)]


@pytest.mark.parametrize("length", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_long_noise_is_compared(length: int):
    chance = random.Random(7)
    first = "".join(chance.choice("ab \n") for _ in range(length))
    second = "".join(chance.choice("ab \n") for _ in range(length))
    spans = differences(first, second)
    assert joined(spans, Kind.INSERT) == first
    assert joined(spans, Kind.DELETE) == second


def test_a_long_text_in_one_line_with_one_word_changed():
    words = [f"w{number % 977}" for number in range(200_000)]
    changed = [*words]
    changed[123_456] = "other"
    (before, deleted, inserted, after) = differences(" ".join(words), " ".join(changed))
    assert (deleted.text, inserted.text) == (words[123_456], "other")
    assert before.kind is after.kind is Kind.EQUAL


def test_a_comparison_can_be_cancelled_at_any_check():
    """Asked often enough that a comparison which nobody wants any more ends at once, also where nothing is the same."""
    first = " ".join(f"{number * 7919 % 100_003:x}" for number in range(12_000))
    second = " ".join(f"{number * 104_729 % 99_991:x}" for number in range(12_000))
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1

    differences(first, second, check)
    every = calls

    def stop() -> None:
        nonlocal calls
        calls -= 1
        if calls == every // 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        differences(first, second, stop)
    assert every > 20
