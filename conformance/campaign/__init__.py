"""Long fuzzing: plan -> rounds -> shards -> ``run_shard`` -> rows -> union -> the next round.

``plan`` says which shards a round has; ``shard`` holds one and is a pure function of what it is given; ``supervise``
runs it in a child; ``local`` and ``spark`` run many; ``ledger`` keeps their rows; ``corpus`` what is worth mutating;
``drive`` goes through the rounds; ``telling`` makes the report of it all and ``triage`` says what is new.
"""
