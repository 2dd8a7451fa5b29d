import { heartbeatV2, heartbeatV3 } from '@platformatic/kafka'

for (const api of [heartbeatV2, heartbeatV3]) {
  console.log(api.createRequest('g', 1, 'm', 'i').buffer.toString('hex'))
}
