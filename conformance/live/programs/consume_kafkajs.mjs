// A consumer of kafkajs: consumes and commits until SIGTERM, then leaves and closes.
import { createRequire } from 'node:module'

const { Kafka, logLevel } = createRequire(`${process.argv[2]}/`)('kafkajs')
const given = name => process.env[`KIPCHECK_${name}`]
const number = name => given(name) && Number(given(name))
const known = settings => Object.fromEntries(Object.entries(settings).filter(([, value]) => value))

const kafka = new Kafka(known({ brokers: [given('BOOTSTRAP')], clientId: given('CLIENT_ID'), logLevel: logLevel.ERROR }))
const consumer = kafka.consumer(known({
  groupId: given('GROUP'),
  sessionTimeout: number('SESSION_MS'),
  heartbeatInterval: number('HEARTBEAT_MS'),
  rebalanceTimeout: number('REBALANCE_MS'),
  maxWaitTimeInMs: 500
}))
const how = given('COMMIT') ?? 'auto'
if (how === 'revoked') {
  console.error('kafkajs has no callback for revoked partitions')
  process.exit(2)
}
const offsets = messages => messages.map(({ topic, partition, message }) =>
  ({ topic, partition, offset: `${BigInt(message.offset) + 1n}` }))

// Of a program that commits late: the last message of each partition, and the partitions that it has.
let held = new Map()
let assigned = null
const done = new Map()
consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => { assigned = payload.memberAssignment })

// After a rebalance: what was read before, of the partitions that the consumer still has.
async function commitLate() {
  const late = offsets([...held.values()]).filter(({ topic, partition, offset }) =>
    assigned[topic]?.includes(partition) && BigInt(offset) > (done.get(`${topic}-${partition}`) ?? 0n))
  held = new Map()
  assigned = null
  for (const { topic, partition, offset } of late) done.set(`${topic}-${partition}`, BigInt(offset))
  if (late.length) await consumer.commitOffsets(late)
}

async function eachMessage(found) {
  const { topic, partition, message } = found
  console.log(topic, partition, message.offset)
  if (how === 'sync') await consumer.commitOffsets(offsets([found]))
  if (how === 'async') consumer.commitOffsets(offsets([found])).catch(error => console.error(`${error}`))
  if (how !== 'late') return
  if (assigned) await commitLate()
  held.set(`${topic}-${partition}`, found)
}

// Works after a batch, with heartbeats meanwhile, for which kafkajs needs its user.
async function eachBatch({ batch: { topic, partition, messages }, heartbeat, isRunning, isStale, resolveOffset }) {
  for (const message of messages) {
    if (!isRunning() || isStale()) return
    await eachMessage({ topic, partition, message })
    resolveOffset(message.offset)
  }
  const until = Date.now() + number('PAUSE_MS')
  while (isRunning() && !isStale() && Date.now() < until) {
    await new Promise(resolve => setTimeout(resolve, Math.min(100, until - Date.now())))
    await heartbeat()
  }
}

process.on('SIGTERM', async () => {
  await consumer.disconnect()
  process.exit(0)
})
await consumer.connect()
const topics = given('PATTERN') ? [new RegExp(given('PATTERN'))] : given('TOPICS').split(',')
for (const topic of topics) await consumer.subscribe({ topic, fromBeginning: given('OFFSET_RESET') !== 'latest' })
await consumer.run({
  autoCommit: how === 'auto',
  autoCommitInterval: number('COMMIT_MS') || 100,
  // A program that works handles all partitions at once.
  ...number('PAUSE_MS') ? { eachBatch, partitionsConsumedConcurrently: 4 } : { eachMessage }
})
