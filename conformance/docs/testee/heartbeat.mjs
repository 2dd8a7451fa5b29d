// A testee in under 100 lines: Heartbeat, versions 0 to 4, on plain Node from 18 on.
//   kipcheck run --target "cmd:node heartbeat.mjs"
import { createInterface } from 'node:readline';

// ---- the code under test: here a small codec, elsewhere a client's library

class Refused extends Error {}
class Reader {
  constructor(hex) { this.bytes = Buffer.from(hex, 'hex'); this.at = 0; }
  take(count) {
    if (count > this.bytes.length - this.at) throw new Refused(`${count} bytes wanted at ${this.at}`);
    return this.bytes.subarray(this.at, (this.at += count));
  }
  int16() { return this.take(2).readInt16BE(); }
  int32() { return this.take(4).readInt32BE(); }
  uvarint() {
    for (let found = 0n, shift = 0n; shift < 35n; shift += 7n) {
      const byte = this.take(1)[0];
      found |= BigInt(byte & 127) << shift;
      if (byte < 128) { if (found < 2n ** 32n) return Number(found); break; }
    }
    throw new Refused(`no varint of 32 bits ends at ${this.at}`);
  }
  text(flexible, nullable) {
    const length = flexible ? this.uvarint() - 1 : this.int16();
    if (length < 0 && nullable && length === -1) return null;
    if (length < 0) throw new Refused(`a text of ${length} bytes at ${this.at}`);
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.take(length));
  }
  tags() {
    let before = -1;
    return Array.from({ length: Math.min(this.uvarint(), this.bytes.length) }, () => {
      const tag = this.uvarint();
      if (tag <= before) throw new Refused(`tag ${tag} after ${before}`);
      before = tag;
      return { tag, data: this.take(this.uvarint()).toString('hex') };
    });
  }
}

const int = (size) => (value) => { const out = Buffer.alloc(size); out.writeIntBE(value, 0, size); return out; };
const uvarint = (n) => Buffer.from(n < 128 ? [n] : [(n % 128) | 128, ...uvarint(Math.floor(n / 128))]);
const text = (value, flexible) => {
  const bytes = Buffer.from(value ?? '', 'utf8'), length = value == null ? -1 : bytes.length;
  return Buffer.concat([flexible ? uvarint(length + 1) : int(2)(length), bytes]);
};
const tags = (found = []) => Buffer.concat([uvarint(found.length), ...found.flatMap(({ tag, data }) =>
  [uvarint(tag), uvarint(data.length / 2), Buffer.from(data, 'hex')])]);

const FIELDS = { // name, type, first version, may it be null? (Before its version it has to be, then.)
  HeartbeatRequest: [['groupId', 'text', 0], ['generationId', 'int32', 0], ['memberId', 'text', 0],
    ['groupInstanceId', 'text', 3, true]],
  HeartbeatResponse: [['throttleTimeMs', 'int32', 1], ['errorCode', 'int16', 0]],
};
const fields = ({ message, version }) => FIELDS[message].filter(([, , since]) => since <= version);
const decode = (op) => {
  const reader = new Reader(op.hex), value = {}, flexible = op.version >= 4;
  for (const [name, type, , nullable] of fields(op)) value[name] = reader[type](flexible, nullable);
  const unknown = flexible ? reader.tags() : [];
  if (reader.at < reader.bytes.length) throw new Refused(`${reader.bytes.length - reader.at} bytes are left`);
  return unknown.length ? { ...value, _unknownTaggedFields: unknown } : value;
};

const WRITE = { int16: int(2), int32: int(4), text };
const encode = (op, value) => {
  const flexible = op.version >= 4;
  for (const [name, , since, nullable] of FIELDS[op.message]) {
    if ((value[name] ?? null) === null ? !nullable && since <= op.version : nullable && since > op.version)
      throw new Refused(`${name} is ${value[name]} in version ${op.version}`);
  }
  const written = fields(op).map(([name, type]) => WRITE[type](value[name], flexible));
  return Buffer.concat([...written, flexible ? tags(value._unknownTaggedFields) : Buffer.alloc(0)]).toString('hex');
};

// ---- the testee protocol

const OPS = {
  encode: (op) => ({ hex: encode(op, op.value) }),
  decode: (op) => ({ value: decode(op) }),
  recode: (op) => ({ hex: encode(op, decode(op)) }),
};
const result = (op) => {
  if (!OPS[op.op] || !FIELDS[op.message]) return { n: op.n, status: 'unsupported', message: `${op.op} ${op.message}` };
  try { return { n: op.n, status: 'accepted', ...OPS[op.op](op) }; }
  catch (thrown) { return { n: op.n, status: 'rejected', class: thrown.constructor.name, message: thrown.message }; }
};
const ANSWERS = {
  hello: () => ({ type: 'hello', protocol: 1, name: 'heartbeat', version: '1.0.0', language: `node ${process.version}`,
    issues: '', roles: ['codec'], capabilities: { HeartbeatRequest: [0, 4], HeartbeatResponse: [0, 4] } }),
  configure: ({ role, edition }) => role === 'codec' && edition.startsWith('apache')
    ? { type: 'configure', ok: true } : { type: 'configure', unsupported: `no ${role} of ${edition}` },
  batch: ({ id, cases }) => ({ type: 'results', id, results: cases.map(result) }),
  bye: () => ({ type: 'bye' }),
};
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const message = JSON.parse(line), answer = ANSWERS[message.type] ?? (() => ({ type: 'unsupported' }));
  process.stdout.write(JSON.stringify(answer(message)) + '\n');
  if (message.type === 'bye') break;
}
