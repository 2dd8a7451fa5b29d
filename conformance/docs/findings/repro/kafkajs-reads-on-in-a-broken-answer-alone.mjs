import { Kafka, logLevel } from 'kafkajs'

const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
const consumer = kafka.consumer({ groupId: 'g', sessionTimeout: 3000, heartbeatInterval: 300, maxWaitTimeInMs: 500 })
process.on('SIGTERM', () => consumer.disconnect().then(() => process.exit()))
await consumer.connect()
await consumer.subscribe({ topics: ['t'], fromBeginning: true })
await consumer.run({ autoCommitInterval: 100, eachMessage: async () => {} })
