import { cooperativeStickyAssigner, roundRobinAssigner } from '@platformatic/kafka'

const metadata = { topics: new Map([['A', { partitionsCount: 2 }], ['B', { partitionsCount: 2 }]]) }
const members = new Map([['l', { topics: ['A'] }], ['f', { topics: ['B'] }]])
for (const assigner of [roundRobinAssigner, cooperativeStickyAssigner]) {
  // As the client of member l calls it: with the topics of its own subscription.
  const shares = assigner('l', members, new Set(['A']), metadata)
  console.log(shares.map(each => [each.memberId, ...each.assignments.values()]))
}
