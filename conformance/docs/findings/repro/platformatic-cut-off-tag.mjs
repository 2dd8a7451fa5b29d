import { Reader, heartbeatV4 } from '@platformatic/kafka'

const reader = Reader.from(Buffer.from('00000000' + '0000' + '01' + '0001', 'hex'))
console.log(JSON.stringify(heartbeatV4.parseResponse(0, 12, 4, reader)), reader.remaining)
