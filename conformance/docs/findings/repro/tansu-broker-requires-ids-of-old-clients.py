from broker_requests import join

for version in (1, 3):
    print(f"JoinGroup {version} without a member id: error", join("g3", version=version).error)
