// The clients, by name: each module has ``load(folder, definitions)``, an object with what ``told`` says and ``answer``.
import { definitions } from './definitions.mjs'

const MODULES = { 'platformatic-kafka': './platformatic.mjs' }

// What the library has no words for. Its first word is one of the limits that hello tells.
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

// Its part of hello.
export async function told(...place) {
  const { name, version, issues, capabilities, missing, assignors, limits } = await library(...place)
  return { name, version, issues, roles: ['codec', 'leader'], capabilities, missing, assignors, limits }
}

// [version...] of each message, as the lowest and the highest, and those that are missing in between.
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
