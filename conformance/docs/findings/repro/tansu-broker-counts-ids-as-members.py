from broker_requests import join

first = join("g1").member
second = join("g1").member
joined = join("g1", first)
print("one member joined, another client asked for an id: error", joined.error, "- members:", joined.members)
