import { roundRobinAssigner } from '@platformatic/kafka'

const metadata = { topics: new Map([['t', { partitionsCount: 1 }]]) }
const members = new Map([['a', { memberId: 'a', topics: ['t'] }], ['b', { memberId: 'b', topics: ['t'] }]])
for (const share of roundRobinAssigner('a', members, new Set(['t']), metadata)) {
  console.log(share.memberId, share.assignments.get('t')?.partitions)
}
