import { Reader, heartbeatV4 } from '@platformatic/kafka'

for (const code of ['0019', '03e7']) {
  try {
    heartbeatV4.parseResponse(0, 12, 4, Reader.from(Buffer.from(`00000000${code}00`, 'hex')))
  } catch (error) {
    console.log(error.name, error.errors?.[0].apiId)
  }
}
