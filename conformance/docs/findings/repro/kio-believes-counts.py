import resource

from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.serial import entity_reader

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # whatever the machine would grant
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print("reading", flush=True)
entity_reader(ApiVersionsResponse)(bytes.fromhex("0000ffffffff7f"), 0)
