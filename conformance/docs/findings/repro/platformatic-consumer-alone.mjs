import { Consumer } from '@platformatic/kafka'

const consumer = new Consumer({
  groupId: 'g',
  clientId: 'c',
  bootstrapBrokers: [process.argv.at(-1)],
  groupInstanceId: process.argv.includes('static') ? 'i' : undefined,
  sessionTimeout: 3000,
  heartbeatInterval: 300
})
const stream = await consumer.consume({ topics: ['t'], fallbackMode: 'earliest', autocommit: 100, maxWaitTime: 500 })
process.on('SIGTERM', () => consumer.close(true).then(() => process.exit()))
for await (const message of stream);
