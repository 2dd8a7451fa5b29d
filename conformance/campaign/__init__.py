"""Campaigns, long fuzzing in rounds: plan -> rounds -> shards -> ``run_shard`` -> rows -> union -> the next round.

``plan`` lists the shards of a round; ``shard`` runs one and is a pure function of its arguments; ``supervise`` turns
the end of its child process into a row; ``local`` and ``spark`` run many; ``ledger`` stores their rows; ``corpus`` the
values that are mutated; ``drive`` runs the rounds; ``telling`` writes the reports and ``triage`` finds what is new.
"""
