// The clients, by name. Each module has ``load(folder, definitions)``, which returns its part of hello and ``answer``.
import { definitions } from './definitions.mjs'

const MODULES = { 'platformatic-kafka': './platformatic.mjs' }

// The library cannot represent something: the name of one of the limits in hello, and a message.
export class Limit extends Error {
  constructor(capability, message) {
    super(message)
    this.capability = capability
  }
}

let loaded

export async function library(name, folder, schemas) {
  const { load } = await import(MODULES[name])
  loaded ??= await load(folder, definitions(schemas))
  return loaded
}

// The client's part of the hello response.
export async function told(...place) {
  const { name, version, issues, capabilities, missing, operations, assignors, limits } = await library(...place)
  return { name, version, issues, roles: ['codec', 'leader'], capabilities, missing, operations, assignors, limits }
}

// Ranges of versions, from the versions of each message: lowest and highest, and those missing in between.
export function spans(versions) {
  const capabilities = {}
  const missing = {}
  for (const [message, found] of Object.entries(versions)) {
    const low = Math.min(...found)
    const high = Math.max(...found)
    capabilities[message] = [low, high]
    const lacking = []
    for (let version = low; version < high; version++) if (!found.includes(version)) lacking.push(version)
    if (lacking.length) missing[message] = lacking
  }
  return { capabilities, missing }
}
