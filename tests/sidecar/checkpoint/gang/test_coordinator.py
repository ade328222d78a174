from tests.support.gang_site import BEFORE, commits, join, joined_gang, parts, publish, quiet, steps


async def test_a_step_is_committed_once_all_parts_exist(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    found, problems = await one.commit_complete()
    assert (found, commits(site)) == ([], [])
    assert problems[0].what == "step-100 waits for rank 1 of 2"
    await publish(site, two, 100, "b")
    found, problems = await two.commit_complete()
    assert (found, problems) == (commits(site), [])
    assert await one.commit_complete() == (found, [])
    assert await one.commit_complete() == ([], [])
    assert [(f.name, f.object, f.rank) for f in found[0].files] == [
        ("rank-0", "own-0/rank-0", None),
        ("rank-1", "own-1/rank-1", None),
    ]
    assert (found[0].world, found[0].step, found[0].rank) == (2, 100, 1)
    assert parts(site) == []


async def test_a_newer_step_abandons_older_ones_by_name(site):
    one, two = await joined_gang(site)
    await publish(site, one, 90, "a")
    await publish(site, one, 100, "a")
    await publish(site, two, 100, "b")
    await one.commit_complete()
    assert [one.is_abandoned(name) for name in ("step-90", "step-110", "best-3")] == [True, False, False]
    _, problems = await one.commit_complete()
    assert [(p.what, p.measured) for p in problems] == [
        ("step-90 was given up", "step-100 is already durable; it lacked rank 1 of 2")
    ]
    await publish(site, two, 90, "b")
    await two.commit_complete()
    assert await one.commit_complete() == ([], [])
    assert steps(site) == [100]


async def test_complete_steps_are_committed_in_their_order(site):
    one, two = await joined_gang(site)
    for step in (100, 90):
        await publish(site, one, step, "a")
        await publish(site, two, step, "b")
    await one.commit_complete()
    assert steps(site) == [90, 100]


async def test_a_part_of_the_previous_attempt_is_not_joined(site):
    one, _ = await joined_gang(site)
    await publish(site, one, 100, "a1")
    again = await join(site, 1, "w1-again")
    await again.membership.refresh()
    site.time += 10
    await publish(site, again, 100, "b2")
    _, problems = await again.commit_complete()
    assert problems[0].what == "step-100 waits for rank 0 of 2"
    _, problems = await one.commit_complete()
    assert (problems[0].what, commits(site)) == ("step-100 was given up", [])
    assert "has restarted" in problems[0].measured
    assert one.is_abandoned("step-100")


async def test_a_part_has_the_epoch_from_before_its_files_were_written(site):
    one, _ = await joined_gang(site)
    written = site.time
    site.time += 10
    again = await join(site, 1, "w1-again")
    await one.membership.refresh()
    site.time += 10
    await publish(site, again, 100, "b2")
    await publish(site, one, 100, "a1", when=written)
    for gang in (one, again):
        assert (await gang.commit_complete())[0] == []
    await publish(site, one, 110, "a2")
    await publish(site, again, 110, "b2")
    await one.commit_complete()
    assert steps(site) == [110]


async def test_files_older_than_the_agent_have_no_epoch(site):
    one, two = await joined_gang(site)
    for gang in (one, two):
        await publish(site, gang, 100, "a", when=BEFORE)
    assert [(await gang.commit_complete())[0] for gang in (one, two)] == [[], []]


async def test_files_of_the_future_have_no_epoch(site):
    for gang in await joined_gang(site):
        await publish(site, gang, 100, "a", when=site.time + 5)
        assert (await gang.commit_complete())[0] == []


async def test_a_waiting_step_is_not_lost_if_the_worker_restarts(site):
    _, two = await joined_gang(site)
    written = site.time
    site.time += 10
    await publish(site, await join(site, 0), 100, "a", when=written)
    await publish(site, two, 100, "b", when=written)
    assert len((await two.commit_complete())[0]) == 1


async def test_a_clock_that_is_set_back_joins_no_unrelated_parts(site):
    one, _ = await joined_gang(site)
    written = site.time
    await one.membership.refresh()
    site.time -= 300
    again = await join(site, 1, "w1-again")
    await one.membership.refresh()
    for later in (10, 400):
        site.time += later
        await publish(site, one, 100, "a1", when=written)
        await publish(site, again, 100, "b2")
        assert [(await gang.commit_complete())[0] for gang in (one, again)] == [[], []]


async def test_a_trainer_that_restarts_under_its_agent_is_another_attempt(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a1")
    site.time += 5
    await publish(site, one, 100, "a2", when=site.time - 1)
    await publish(site, two, 100, "b", when=site.time - 1)
    assert (await two.commit_complete())[0] == []
    names = [key for key in site.content.objects if "/ranks/" in key]
    assert sorted(names) == ["run/.podferry/ranks/0.2-w0", "run/.podferry/ranks/1-w1"]
    site.time += 10
    for gang in (one, two):
        await publish(site, gang, 110, "a")
    await two.commit_complete()
    assert steps(site) == [110]


async def test_a_lower_step_that_is_saved_later_is_another_attempt(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a1")
    site.time += 5
    await publish(site, one, 60, "a2", when=site.time - 1)
    await publish(site, two, 100, "b2", when=site.time - 1)
    assert (await two.commit_complete())[0] == []


async def test_a_drain_may_publish_older_steps_after_newer_ones(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a", when=site.time)
    await publish(site, one, 90, "a", when=site.time - 5)
    await publish(site, two, 90, "b")
    await two.commit_complete()
    assert steps(site) == [90]


async def test_added_files_are_of_the_same_attempt(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    site.time += 5
    await publish(site, one, 100, "a", ("late", "l"))
    await publish(site, two, 100, "b")
    assert [f.name for f in (await two.commit_complete())[0][0].files] == ["late", "rank-0", "rank-1"]


async def test_an_agent_that_starts_commits_what_is_complete(site):
    one, two = await joined_gang(site)
    for step in (100, 90):
        await publish(site, one, step, "a")
        await publish(site, two, step, "b")
    await publish(site, one, 110, "a")
    found = await quiet(site, 0, "next").commit_before_start()
    assert [commit.step for commit in found] == steps(site) == [90, 100]
    await join(site, 0, "next")
    await publish(site, two, 110, "b")
    assert await quiet(site, 1, "next").commit_before_start() == []


async def test_a_run_that_goes_back_on_purpose_commits_lower_steps(site):
    one, two = await joined_gang(site)
    for gang in (one, two):
        await publish(site, gang, 100, "a")
    await one.commit_complete()
    again = [await join(site, rank, f"x-again-{rank}") for rank in range(2)]
    for gang in again:
        await gang.membership.refresh()
    site.time += 10
    for gang in again:
        await publish(site, gang, 60, "c")
    await again[1].commit_complete()
    assert steps(site) == [100, 60]
