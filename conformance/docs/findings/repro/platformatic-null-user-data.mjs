import { decodeConsumerProtocolAssignment } from '@platformatic/kafka'

console.log(decodeConsumerProtocolAssignment(Buffer.from('0000' + '00000000' + 'ffffffff', 'hex')).userData)
