from faults.run import TRIES, Run
from faults.sabotage import SABOTAGES


def runs(monkeypatch, *figures):
    """A `Run` whose episodes report these figures, one after the other; the seeds that were played."""
    seeds, said = [], iter(figures)

    def play(self, made, sabotage=""):
        seeds.append(made.seed)
        return {"seed": made.seed, "violations": [{"figure": figure, "what": ""} for figure in next(said)]}

    monkeypatch.setattr(Run, "play", play)
    return Run(None, {}, None), seeds


def test_a_lack_that_an_episode_does_not_show_is_looked_for_in_others(monkeypatch):
    name = "own-links"
    run, seeds = runs(monkeypatch, [], ["crashed"], [SABOTAGES[name].figure])
    assert run._proof(name, 5)["violations"]
    assert len(set(seeds)) == 3


def test_the_first_episode_that_shows_it_is_enough(monkeypatch):
    run, seeds = runs(monkeypatch, [SABOTAGES["no-data"].figure])
    assert run._proof("no-data", 5)["seed"] == 5
    assert seeds == [5]


def test_what_no_episode_shows_is_reported_as_such(monkeypatch):
    run, seeds = runs(monkeypatch, *[[]] * TRIES)
    assert run._proof("no-data", 5)["violations"] == []
    assert len(seeds) == TRIES
