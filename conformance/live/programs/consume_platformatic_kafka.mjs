// A consumer of @platformatic/kafka: consumes and commits until SIGTERM, then leaves and closes.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const found = createRequire(`${process.argv[2]}/`).resolve('@platformatic/kafka')
const { Consumer, MessagesStreamModes } = await import(pathToFileURL(found).href)
const given = name => process.env[`KIPCHECK_${name}`]
const number = name => given(name) && Number(given(name))
const known = settings => Object.fromEntries(Object.entries(settings).filter(([, value]) => value))

const classic = given('PROTOCOL') === 'consumer' ? { groupProtocol: 'consumer' } : {
  sessionTimeout: number('SESSION_MS'),
  heartbeatInterval: number('HEARTBEAT_MS'),
  rebalanceTimeout: number('REBALANCE_MS')
}
const consumer = new Consumer(known({
  groupId: given('GROUP'),
  clientId: given('CLIENT_ID') || 'kipcheck',
  bootstrapBrokers: [given('BOOTSTRAP')],
  groupInstanceId: given('INSTANCE'),
  ...classic
}))
const how = given('COMMIT') || 'auto'
const stream = await consumer.consume({
  topics: given('TOPICS').split(','),
  mode: MessagesStreamModes.COMMITTED,
  fallbackMode: given('OFFSET_RESET') || 'earliest',
  autocommit: how === 'auto' && (number('COMMIT_MS') || 100),
  maxWaitTime: 500
})
let ended = false
process.on('SIGTERM', async () => {
  ended = true
  await consumer.close(true)
  process.exit(0)
})

// Of a program that commits late: the last message of each partition, which it commits after a rebalance, if it still
// has the partition.
let held = new Map()
let rebalanced = false
const done = new Map()
consumer.on('consumer:group:join', () => { rebalanced = true })

async function commitLate() {
  for (const [place, each] of held) {
    const isOwned = consumer.assignments?.some(({ topic, partitions }) =>
      topic === each.topic && partitions.includes(each.partition))
    if (isOwned && each.offset > (done.get(place) ?? -1n)) {
      done.set(place, each.offset)
      await each.commit()
    }
  }
}

async function commit(each) {
  if (how === 'sync') return each.commit()
  if (how === 'async') return each.commit(error => { if (error) console.error(`${error}`) })
  if (how !== 'late') return
  if (rebalanced) {
    rebalanced = false
    await commitLate()
    held = new Map()
  }
  held.set(`${each.topic}-${each.partition}`, each)
}

for await (const each of stream) {
  console.log(each.topic, each.partition, each.offset)
  if (given('PAUSE_MS') && stream.readableLength === 0) {
    const until = Date.now() + number('PAUSE_MS')
    while (!ended && Date.now() < until) await new Promise(resolve => setTimeout(resolve, 50))
  }
  try {
    await commit(each)
  } catch (error) {
    console.error(`${error}`)
  }
}
