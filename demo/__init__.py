"""`make demo`: the main job from end to end on this machine, and a report of how it went."""
