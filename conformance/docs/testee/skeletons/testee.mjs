// The shortest testee in JavaScript, of HeartbeatResponse v0, for Node from 18 on.
//   kipcheck doctor --target "cmd:node testee.mjs"
import { createInterface } from 'node:readline';

// ---- call your library here; throw what it throws

function decode(bytes) {
  if (bytes.length !== 2) throw new RangeError(`${bytes.length} bytes`);
  return { errorCode: bytes.readInt16BE() };
}

function encode(value) {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value.errorCode ?? 0); // a field that is left out has its default
  return bytes;
}

// ---- the testee protocol

function run({ op, message, version, hex, value }) {
  if (message !== 'HeartbeatResponse' || version !== 0) return { status: 'unsupported' };
  if (op === 'decode') return { status: 'accepted', value: decode(Buffer.from(hex, 'hex')) };
  if (op === 'encode') return { status: 'accepted', hex: encode(value).toString('hex') };
  if (op === 'recode') return { status: 'accepted', hex: encode(decode(Buffer.from(hex, 'hex'))).toString('hex') };
  return { status: 'unsupported' };
}

function result(step) {
  try {
    return { n: step.n, ...run(step) };
  } catch (thrown) {
    return { n: step.n, status: 'rejected', class: thrown.name, message: thrown.message };
  }
}

function answer(request) {
  switch (request.type) {
    case 'hello': return { type: 'hello', protocol: 1, name: 'skeleton-js', version: '1', language: 'javascript',
      issues: '', roles: ['codec'], capabilities: { HeartbeatResponse: [0, 0] } };
    case 'configure': return request.role === 'codec' && request.edition.startsWith('apache')
      ? { type: 'configure', ok: true } : { type: 'configure', unsupported: 'only the role codec, of apache' };
    case 'batch': return { type: 'results', id: request.id, results: request.cases.map(result) };
    case 'bye': return { type: 'bye' };
  }
  return { type: 'unsupported' };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  process.stdout.write(JSON.stringify(answer(request)) + '\n');
  if (request.type === 'bye') break;
}
