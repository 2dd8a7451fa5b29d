from kafka.protocol.metadata.api_versions import ApiVersionsResponse

print(ApiVersionsResponse.decode(bytes.fromhex("002a0000000000000007"), version=1))
try:
    print(ApiVersionsResponse.decode(bytes.fromhex("002a010000000700"), version=3))
except Exception as trouble:
    print(type(trouble).__name__)
