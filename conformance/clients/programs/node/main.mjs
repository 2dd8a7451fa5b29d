// Testee protocol 1 over standard input and output, for Kafka clients in JavaScript.
//
// It observes and never judges. Arguments: the name of the client, the folder with what npm installed, and the folder
// with Kafka's message definitions, from which the names of fields are taken. Operations run in a worker, since an
// infinite loop cannot be stopped otherwise; when the worker dies, the operation is known and a new worker runs the next.
import { Worker } from 'node:worker_threads'
import { parse, print } from './json.mjs'
import { told } from './library.mjs'

const [, , ...place] = process.argv
const MOST = 16 << 20
const HEAP = 512 // MiB
const LOOK = 20 // ms

class Ended extends Error {}

// Starts a worker for the first operation, and again after its death.
class Supervised {
  #worker = null
  #noise = ''
  #settle = null

  #begin() {
    const worker = new Worker(new URL('./worker.mjs', import.meta.url), {
      workerData: place, resourceLimits: { maxOldGenerationSizeMb: HEAP }, stdout: true, stderr: true
    })
    const hear = data => { this.#noise = (this.#noise + data).slice(-8192) }
    worker.stdout.on('data', hear)
    worker.stderr.on('data', hear)
    worker.on('message', result => this.#settle?.(result))
    worker.on('error', error => {
      const memory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      this.#die(worker, memory ? 'memory' : 'crashed', `${error.name}: ${error.message}`, error.stack)
    })
    worker.on('exit', code => this.#die(worker, 'crashed', `left with exit code ${code}`))
    this.#worker = worker
    this.#noise = ''
  }

  #die(worker, cause, message, stack = '') {
    if (worker !== this.#worker) return
    this.#worker = null
    worker.terminate()
    this.#settle?.({ status: 'died', cause, message, evidence: `${this.#noise}${stack}`.slice(-8192) })
  }

  // The result of an operation; a death is a result too.
  async result(op, limit) {
    if (!this.#worker) this.#begin()
    const worker = this.#worker
    const began = process.cpuUsage()
    let watch
    try {
      return await new Promise(resolve => {
        this.#settle = resolve
        watch = setInterval(() => {
          const { user, system } = process.cpuUsage(began)
          if ((user + system) / 1000 > limit) {
            this.#die(worker, 'timeout', 'more processor time than a case may take')
          }
        }, LOOK)
        worker.postMessage(op)
      })
    } finally {
      clearInterval(watch)
      this.#settle = null
    }
  }

  close() {
    this.#worker?.terminate()
  }
}

const atWork = new Supervised()

async function reply(order) {
  switch (order.type) {
    case 'hello':
      return { type: 'hello', protocol: 1, language: `node ${process.version}`, framing: ['lines', 'frames'], ...await told(...place) }
    case 'configure': {
      const { roles, name } = await told(...place)
      if (order.edition.split('@')[0] !== 'apache') {
        return { type: 'configure', unsupported: `${name} does not implement edition ${order.edition}` }
      }
      if (!roles.includes(order.role)) {
        return { type: 'configure', unsupported: `${name} does not play the role ${order.role}` }
      }
      return { type: 'configure', ok: true }
    }
    case 'batch': {
      const results = []
      for (const { n, ...op } of order.cases) {
        results.push({ n, ...await atWork.result(op, order.cpu_ms ?? 2000) })
      }
      return { type: 'results', id: order.id, results }
    }
    case 'bye':
      return { type: 'bye' }
  }
  return { type: 'unsupported', message: `unknown message type ${order.type}` }
}

let framed = false
let held = Buffer.alloc(0)

// The next message in the received bytes; null while it is incomplete.
function next() {
  const start = framed ? 4 : 0
  if (framed && held.length < 4) return null
  const size = framed ? held.readUInt32BE(0) : held.indexOf(10)
  if (size > MOST) throw new Ended(`a message of ${size} bytes`)
  if (size < 0 || held.length < start + size) return null
  const text = held.toString('utf8', start, start + size)
  held = held.subarray(start + size + (framed ? 0 : 1))
  return text
}

async function say(answer) {
  const text = Buffer.from(print(answer))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  const message = framed ? [length, text] : [text, Buffer.from('\n')]
  await new Promise(resolve => process.stdout.write(Buffer.concat(message), resolve))
}

for await (const data of process.stdin) {
  held = held.length ? Buffer.concat([held, data]) : data
  for (let text = next(); text !== null; text = next()) {
    const order = parse(text)
    const answer = await reply(order)
    await say(answer)
    if (order.type === 'bye') process.exit(0)
    if (answer.ok && order.framing) framed = order.framing === 'frames'
  }
}
atWork.close()
