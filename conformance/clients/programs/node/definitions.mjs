// Reads Kafka's message JSON: the names and types of fields, in each version.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export function definitions(folder) {
  const found = {}
  for (const file of readdirSync(folder)) {
    if (!file.endsWith('.json')) continue
    const lines = readFileSync(join(folder, file), 'utf8').split('\n')
    const text = lines.filter(line => !line.trim().startsWith('//')).join('\n')
    const one = JSON.parse(text)
    const shared = Object.fromEntries((one.commonStructs ?? []).map(each => [each.name, each.fields]))
    found[one.name] = { ...one, fields: one.fields.map(each => field(each, shared)) }
  }
  return found
}

function field(each, shared) {
  const list = each.type.startsWith('[]')
  const type = list ? each.type.slice(2) : each.type
  const inner = each.fields ?? shared[type]
  return {
    name: each.name[0].toLowerCase() + each.name.slice(1),
    type,
    list,
    known: span(each.versions),
    nullable: span(each.nullableVersions ?? 'none'),
    tagged: each.tag !== undefined,
    default: each.default,
    inner: inner?.map(one => field(one, shared))
  }
}

function span(text) {
  if (text === 'none') return () => false
  const [, low, plus, high] = /^(\d+)(\+)?(?:-(\d+))?$/.exec(text)
  return version => version >= +low && (plus !== undefined || version <= +(high ?? low))
}

// The default of a field.
export function fresh(field) {
  if (field.default === 'null') return null
  if (field.list) return []
  if (field.inner) return Object.fromEntries(field.inner.map(each => [each.name, fresh(each)]))
  switch (field.type) {
    case 'string':
    case 'bytes':
    case 'records':
      return field.default ?? ''
    case 'bool':
      return field.default === true || field.default === 'true'
    case 'uuid':
      return '00000000-0000-0000-0000-000000000000'
  }
  return Number(field.default ?? 0)
}
