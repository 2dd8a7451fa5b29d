import { cooperativeStickyAssigner } from '@platformatic/kafka'

const member = (partitions, generationId) => ({
  topics: ['t'], ownedPartitions: partitions.length ? [{ topic: 't', partitions }] : [], generationId
})
let members = new Map([['a', member([0, 1], 10)], ['b', member([], -1)], ['c', member([], -1)]])
for (let round = 1; round <= 3; round++) {
  const shares = cooperativeStickyAssigner('a', members, new Set(['t']), { topics: new Map([['t', { partitionsCount: 2 }]]) })
  const owned = new Map(shares.map(each => [each.memberId, each.assignments.get('t')?.partitions ?? []]))
  console.log(round, [...owned].map(([name, partitions]) => `${name} [${partitions}]`).join(' '))
  members = new Map([...owned].map(([name, partitions]) => [name, member(partitions, 10 + round)]))
}
