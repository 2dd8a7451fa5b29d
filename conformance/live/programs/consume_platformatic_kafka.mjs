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
const stream = await consumer.consume({
  topics: given('TOPICS').split(','),
  mode: MessagesStreamModes.COMMITTED,
  fallbackMode: 'earliest',
  autocommit: 100,
  maxWaitTime: 500
})
process.on('SIGTERM', async () => {
  await consumer.close(true)
  process.exit(0)
})
for await (const each of stream) console.log(each.topic, each.partition, each.offset)
