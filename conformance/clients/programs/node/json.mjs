// Parses and prints JSON without loss of precision: integers that a double cannot represent are BigInt.

const WHOLE = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g
const MARK = '\u0000whole:'
const MARKED = /"\\u0000whole:(-?\d+)"/g

export function parse(text) {
  const marked = text.replace(WHOLE, found => found.startsWith('"') ? found : `"\\u0000whole:${found}"`)
  return JSON.parse(marked, (_, value) =>
    typeof value === 'string' && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value)
}

export function print(value) {
  const text = JSON.stringify(value, (_, each) => typeof each === 'bigint' ? `${MARK}${each}` : each)
  return text.replace(MARKED, '$1')
}
