// Adapts @platformatic/kafka: its ``createRequest`` writes requests, its ``parseResponse`` reads responses.
//
// Parameters are matched by name, since they are named as in the definitions. It has no code for what a client never
// does: to read a request or write a response.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fresh } from './definitions.mjs'
import { Limit, spans } from './library.mjs'

const TAGS = '_unknownTaggedFields'
// The user data of its own members, in the versions of the protocol that they use.
const OWN = null
const NIL = '00000000-0000-0000-0000-000000000000'
const UPGRADE = 1
const SAFE_DOWNGRADE = 2
const LIMITS = {
  tags: 'it cannot keep unknown tagged fields',
  tagged: 'this release does not read tagged fields at the end of a response',
  place: 'it cannot represent some fields and values',
  words: 'it has its own names for states and types of groups',
  order: 'it writes consumer protocol data in its own order, and without topics that have no partitions'
}

export async function load(folder, definitions) {
  const root = join(folder, 'node_modules', '@platformatic', 'kafka')
  const from = path => import(pathToFileURL(join(root, 'dist', path)).href)
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const one = new Platformatic(version, definitions)
  one.reader = (await from('protocol/reader.js')).Reader
  for (const area of ['admin', 'consumer', 'metadata']) {
    for (const file of readdirSync(join(root, 'dist', 'apis', area))) {
      if (/-v\d+\.js$/.test(file)) one.take(await from(`apis/${area}/${file}`))
    }
  }
  one.assigners = await from('clients/consumer/partitions-assigners.js')
  // Before 2.12 this module is private to its consumer.
  one.protocol = await from('clients/consumer/consumer-protocol.js').catch(() => null)
  return one.ready()
}

class Platformatic {
  name = 'platformatic-kafka'
  issues = 'https://github.com/platformatic/kafka/issues'
  limits = LIMITS
  #apis = {}
  #written = {} // message -> source code that writes it, for all versions

  constructor(version, definitions) {
    this.version = version
    this.definitions = definitions
    this.named = {}
    for (const each of Object.values(definitions)) {
      if (each.apiKey !== undefined) this.named[`${each.apiKey} ${each.type}`] = each.name
    }
  }

  // Registers a module of an API in one version, if its parameters are the fields of that version.
  take({ api, createRequest, parseResponse }) {
    const request = this.definitions[this.named[`${api.key} request`]]
    const response = this.definitions[this.named[`${api.key} response`]]
    // Some modules export only what differs from another version.
    if (!request || !response || !createRequest || !parseResponse) return
    const parameters = parametersOf(createRequest)
    this.#written[request.name] = (this.#written[request.name] ?? '') + createRequest
    const wanted = request.fields.filter(each => each.known(api.version) && !each.tagged)
    const known = new Set(request.fields.map(each => each.name))
    if (parameters.every(each => known.has(each)) && wanted.every(each => parameters.includes(each.name))) {
      this.#put(request.name, api, { encode: value => this.#write(request, api, createRequest, parameters, value) })
    }
    this.#put(response.name, api, { decode: data => this.#read(response, parseResponse, api, data) })
  }

  #put(message, { version }, operations) {
    (this.#apis[message] ??= {})[version] = operations
  }

  ready() {
    if (this.protocol) {
      const { encodeConsumerProtocolSubscription: writeSubscription, decodeConsumerProtocolSubscription: readSubscription } = this.protocol
      const { encodeConsumerProtocolAssignment: writeAssignment, decodeConsumerProtocolAssignment: readAssignment } = this.protocol
      const highest = this.protocol.CONSUMER_PROTOCOL_HIGHEST_VERSION
      for (let version = this.protocol.CONSUMER_PROTOCOL_LOWEST_VERSION; version <= highest; version++) {
        this.#put('ConsumerProtocolSubscription', { version }, this.#data('ConsumerProtocolSubscription', version, writeSubscription, readSubscription))
        this.#put('ConsumerProtocolAssignment', { version }, this.#data('ConsumerProtocolAssignment', version, writeAssignment, readAssignment))
      }
    }
    Object.assign(this, spans(Object.fromEntries(
      Object.entries(this.#apis).map(([message, versions]) => [message, Object.keys(versions).map(Number)])
    )))
    this.operations = {}
    for (const [message, versions] of Object.entries(this.#apis)) {
      const found = performed(Object.assign({}, ...Object.values(versions)))
      if (found.length < 3) this.operations[message] = found
    }
    this.assignors = ['roundrobin', ...(this.assigners.cooperativeStickyAssigner ? ['cooperative-sticky'] : [])]
    return this
  }

  async answer(op) {
    if (op.op === 'assign') return this.#assign(op)
    if (op.op === 'user-data') return this.#assigner(op.assignor) && { hex: OWN }
    const operations = this.#apis[op.message]?.[op.version]
    if (!operations) throw new Limit(undefined, `it has no version ${op.version} of ${op.message}`)
    if (!performed(operations).includes(op.op)) throw new Limit(undefined, `it has no code to ${op.op} ${op.message}`)
    if (op.op === 'encode') return { hex: operations.encode(op.value).toString('hex') }
    const found = operations.decode(Buffer.from(op.hex, 'hex'))
    return op.op === 'decode' ? { value: found } : { hex: operations.encode(found).toString('hex') }
  }

  #write(request, { version }, createRequest, parameters, value) {
    const given = taken(request.fields, value)
    demandAll(request.fields, value, version)
    this.#known(request, version, request.fields, value)
    for (const name of Object.keys(given)) {
      if (!parameters.includes(name)) throw new Limit('place', `it has no parameter for ${name}`)
    }
    switch (request.name) {
      case 'ListGroupsRequest':
        if (given.statesFilter?.length || given.typesFilter?.length) throw new Limit('words', LIMITS.words)
        break
      case 'MetadataRequest':
        given.topics &&= given.topics.map(each => topic(each, createRequest))
        break
      case 'UpdateFeaturesRequest': // users pass the upgrade type in every version
        if (version === 0) {
          given.featureUpdates = given.featureUpdates.map(({ allowDowngrade, ...each }) => ({
            upgradeType: allowDowngrade ? SAFE_DOWNGRADE : UPGRADE, ...each
          }))
        }
    }
    return createRequest(...parameters.map(name => given[name])).buffer
  }

  // Refuses fields of elements that belong to another version, if no version of the code reads them.
  #known(request, version, fields, value) {
    for (const field of fields.filter(each => each.inner && value[each.name])) {
      for (const each of [value[field.name]].flat()) {
        for (const name of Object.keys(each)) {
          const { known } = field.inner.find(inner => inner.name === name)
          if (!known(version) && !new RegExp(`\\.${name}\\b`).test(this.#written[request.name])) {
            throw new Limit('place', `its requests have no field ${name}`)
          }
        }
        this.#known(request, version, field.inner, each)
      }
    }
  }

  #read(response, parseResponse, { key, version }, data) {
    const reader = this.reader.from(data)
    let found
    try {
      found = parseResponse(0, key, version, reader)
    } catch (error) {
      if (error?.code !== 'PLT_KFK_RESPONSE') throw error
      found = error.response // the response: it throws for error codes
    }
    const code = parseResponse.toString()
    if (response.fields.some(each => each.tagged && each.known(version) && !code.includes(each.name))) {
      const left = data.subarray(reader.position)
      if (left.length && !left.equals(Buffer.of(0))) throw new Limit('tagged', LIMITS.tagged)
    }
    // It returns a list of coordinators in every version.
    if (response.name === 'FindCoordinatorResponse' && version < 4) found = { ...found, ...found.coordinators[0] }
    return shown(response.fields, found, version)
  }

  #data(message, version, write, read) {
    const { fields } = this.definitions[message]
    const encode = value => {
      const given = taken(fields, value)
      demandAll(fields, value, version)
      if (given.rackId === '') throw new Limit('place', 'an empty rack is written as null')
      for (const list of [given.ownedPartitions, given.assignedPartitions]) if (list) inOrder(list, each => each.topic, (a, b) => a.localeCompare(b))
      if (given.topics) inOrder(given.topics, each => each)
      for (const { partitions } of [...given.ownedPartitions ?? [], ...given.assignedPartitions ?? []]) {
        if (!partitions.length) throw new Limit('order', LIMITS.order)
        inOrder(partitions, each => each, (a, b) => a - b)
      }
      return write({ ...given, version })
    }
    return { encode, decode: data => shown(fields, read(data), version) }
  }

  // The first member leads; it knows only the topics that it subscribes to.
  #assign({ assignor, topics, members }) {
    const assigner = this.#assigner(assignor)
    const known = new Map(topics.map(each => [each.name, { partitionsCount: each.partitions }]))
    const group = new Map(members.map(each => [each.id, this.#member(assignor, each)]))
    const leader = members[0]
    const plan = leader ? assigner(leader.id, group, new Set(leader.subscription), { topics: known }) : []
    return {
      assignment: plan.map(({ memberId, assignments }) => {
        const { partitions, userData } = this.#share(assignor, [...assignments.values()])
        return { id: memberId, partitions, userData }
      })
    }
  }

  #assigner(name) {
    if (!this.assignors.includes(name)) throw new Limit(undefined, `it has no assignor ${name}`)
    return { roundrobin: this.assigners.roundRobinAssigner, 'cooperative-sticky': this.assigners.cooperativeStickyAssigner }[name]
  }

  // A member as the leader decodes it from the bytes that the member's own client wrote.
  #member(assignor, { id, subscription, owned, generation, rack, userData }) {
    const metadata = userData === null ? OWN : Buffer.from(userData, 'hex')
    if (!this.protocol) return { memberId: id, version: 1, topics: subscription, metadata }
    const cooperative = assignor === 'cooperative-sticky'
    const before = cooperative ? ownedOf(subscription, owned) : []
    const found = this.protocol.decodeConsumerProtocolSubscription(this.protocol.encodeConsumerProtocolSubscription({
      version: cooperative ? this.protocol.CONSUMER_PROTOCOL_HIGHEST_VERSION : 1,
      topics: subscription,
      userData: metadata,
      ownedPartitions: before,
      generationId: cooperative && before.length ? generation : -1,
      rackId: cooperative ? rack : null
    }))
    return { ...found, memberId: id, metadata: found.userData }
  }

  #share(assignor, assignments) {
    const flat = all => all.flatMap(({ topic, partitions }) => partitions.map(each => [topic, each]))
    if (!this.protocol) return { partitions: flat(assignments), userData: '' }
    const bytes = this.protocol.encodeConsumerProtocolAssignment({
      version: assignor === 'cooperative-sticky' ? this.protocol.CONSUMER_PROTOCOL_HIGHEST_VERSION : 0,
      assignedPartitions: assignments,
      userData: null
    })
    return { partitions: flat(this.protocol.decodeConsumerProtocolAssignment(bytes).assignedPartitions), userData: null }
  }
}

// The operations of the protocol that its functions for a message suffice for.
function performed({ encode, decode }) {
  return [...(encode ? ['encode'] : []), ...(decode ? ['decode'] : []), ...(encode && decode ? ['recode'] : [])]
}

function parametersOf(method) {
  const [, list] = /\(([^)]*)\)/.exec(method.toString())
  return list.split(',').map(each => each.replace(/=.*/s, '').trim().replace(/^_/, '')).filter(Boolean)
}

// A topic of a metadata request: its name; or an object with an id, or with a null name, in releases that accept it.
function topic({ topicId = NIL, name }, createRequest) {
  const whole = createRequest.toString().includes('topicId')
  if (topicId === NIL && name !== null) return name
  if (topicId === NIL && whole) return { topicId: null, name }
  if (whole) return { topicId, name }
  throw new Limit('place', 'this release names topics only by name')
}

function ownedOf(subscription, owned) {
  const found = new Map()
  for (const [topic, partition] of owned) {
    if (!subscription.includes(topic)) continue
    if (!found.has(topic)) found.set(topic, { topic, partitions: [] })
    found.get(topic).partitions.push(partition)
  }
  return [...found.values()]
}

function inOrder(list, key, compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0)) {
  for (let i = 1; i < list.length; i++) {
    if (compare(key(list[i - 1]), key(list[i])) > 0) throw new Limit('order', LIMITS.order)
  }
}

// Its functions have a parameter for every field, and no defaults.
function demandAll(fields, value, version) {
  for (const field of fields.filter(each => each.known(version) && !each.tagged)) {
    const inner = value[field.name]
    if (inner === undefined) throw new Limit('place', `its functions demand ${field.name}`)
    if (field.inner && inner) for (const each of [inner].flat()) demandAll(field.inner, each, version)
  }
}

// Converts a value of the protocol to the arguments of a user.
function taken(fields, value) {
  const out = {}
  for (const [key, each] of Object.entries(value)) {
    if (key === TAGS) throw new Limit('tags', LIMITS.tags)
    const field = fields.find(one => one.name === key)
    if (!field) throw new Limit('place', `it has no field ${key}`)
    out[key] = each !== null && field.list ? each.map(one => take(field, one)) : take(field, each)
  }
  return out
}

function take(field, value) {
  if (value === null) return null
  if (field.inner) return taken(field.inner, value)
  switch (field.type) {
    case 'bytes':
    case 'records':
      return Buffer.from(value, 'hex')
    case 'int64':
      return BigInt(value)
  }
  return value
}

// Converts what it read to a value of the version; a missing tagged field gets its default.
function shown(fields, found, version) {
  const out = {}
  for (const field of fields) {
    if (!field.known(version)) continue
    if (found[field.name] === undefined) {
      if (field.tagged) out[field.name] = fresh(field)
      continue
    }
    const each = found[field.name]
    out[field.name] = each !== null && field.list ? each.map(one => show(field, one, version)) : show(field, each, version)
  }
  return out
}

function show(field, value, version) {
  if (value === null || value === undefined) return null
  if (field.inner) return shown(field.inner, value, version)
  return Buffer.isBuffer(value) ? value.toString('hex') : value
}
