from broker_requests import answer, join, send

print("a member joins: error", join("g11", join("g11").member).error)
body = answer(send(16, 0, b""))
print("ListGroups names its group:", b"g11" in body)
