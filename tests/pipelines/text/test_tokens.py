from podferry.pipelines.text.tokens import decode, encode


def test_characters_outside_the_alphabet_become_spaces():
    assert decode(encode("a\tb→é😀?\n")) == "a b   ?\n"
    assert len(encode("")) == 0
