from kafka.protocol.metadata.api_versions import ApiVersionsResponse

data = bytes.fromhex("00000100000000010209020100000000010600")
try:
    print(ApiVersionsResponse.decode(data, version=3))
except AssertionError as trouble:
    print(repr(trouble))
