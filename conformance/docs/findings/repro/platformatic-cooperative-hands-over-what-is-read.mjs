import { cooperativeStickyAssigner } from '@platformatic/kafka'

const member = (partitions, generationId) => ({ topics: ['t'], ownedPartitions: [{ topic: 't', partitions }], generationId })
const members = new Map([['a', member([0], 10)], ['b', member([1, 2], 9)]])
const shares = cooperativeStickyAssigner('a', members, new Set(['t']), { topics: new Map([['t', { partitionsCount: 3 }]]) })
for (const each of shares) console.log(each.memberId, each.assignments.get('t').partitions)
