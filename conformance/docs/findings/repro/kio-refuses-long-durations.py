from kio.schema.offset_commit.v2.request import OffsetCommitRequest
from kio.serial import entity_reader

try:
    print(entity_reader(OffsetCommitRequest)(bytes.fromhex("0000ffffffff00000020c49ba5e353f800000000"), 0))
except ValueError as trouble:
    print(trouble)
