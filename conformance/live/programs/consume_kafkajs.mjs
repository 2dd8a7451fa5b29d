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
process.on('SIGTERM', async () => {
  await consumer.disconnect()
  process.exit(0)
})
await consumer.connect()
for (const topic of given('TOPICS').split(',')) await consumer.subscribe({ topic, fromBeginning: true })
await consumer.run({
  autoCommitInterval: 100,
  eachMessage: async ({ topic, partition, message }) => console.log(topic, partition, message.offset)
})
