"""Campaigns, long fuzzing in rounds: plan -> rounds -> shards -> ``run_shard`` -> rows -> union -> the next round.

``plan`` lists the shards of a round; ``shard`` runs one and is a pure function of its arguments; ``process`` turns the
end of its child process into a row; ``executors`` run many; ``rows`` are stored; ``corpus`` has the values that are
mutated; ``driver`` runs the rounds, and ``report`` writes the reports and finds what is new.
"""
