from broker_requests import join

joined = join("g2", "an-id-that-nothing-gave-out")
print("JoinGroup with an unknown member id: error", joined.error, "- members:", joined.members)
