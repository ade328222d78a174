from podferry.sidecar.checkpoint.detect.doubtful_writers import DOUBTFUL_WRITERS


def test_each_way_to_save_is_in_the_table_once():
    assert len({writer.key for writer in DOUBTFUL_WRITERS}) == len(DOUBTFUL_WRITERS)


def test_every_row_says_what_makes_it_sure():
    assert all("`" in writer.remedy for writer in DOUBTFUL_WRITERS)
