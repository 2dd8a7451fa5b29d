import { decodeConsumerProtocolAssignment, decodeConsumerProtocolSubscription } from '@platformatic/kafka'

const subscription = decodeConsumerProtocolSubscription(Buffer.from('0001' + '00000000' + 'ffffffff', 'hex'))
console.log(subscription.version, subscription.ownedPartitions)
console.log(decodeConsumerProtocolAssignment(Buffer.from('0000', 'hex')).assignedPartitions)
