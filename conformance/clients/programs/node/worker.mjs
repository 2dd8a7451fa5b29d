// Runs one operation at a time and posts its result.
import { parentPort, workerData } from 'node:worker_threads'
import { library, Limit } from './library.mjs'

const player = await library(...workerData)

parentPort.on('message', async op => {
  parentPort.postMessage(await result(op))
})

async function result(op) {
  try {
    return { status: 'accepted', ...await player.answer(op) }
  } catch (error) {
    if (error instanceof Limit) {
      return { status: 'unsupported', capability: error.capability, message: error.message }
    }
    return { status: 'rejected', class: error?.constructor?.name ?? typeof error, message: String(error?.message ?? error).slice(0, 300), ...innermost(error) }
  }
}

// File and line of the innermost frame in a package, relative to the folder of the packages.
function innermost(error) {
  const frame = /node_modules\/([^():]*):(\d+):\d+/.exec(String(error?.stack ?? ''))
  return frame === null ? {} : { at: `${frame[1]}:${frame[2]}` }
}
