import { Reader, apiVersionsV3, apiVersionsV4 } from '@platformatic/kafka'

for (const [version, api] of [[3, apiVersionsV3], [4, apiVersionsV4]]) {
  try {
    api.parseResponse(0, 18, version, Reader.from(Buffer.from('002a010000000700', 'hex')))
  } catch (error) {
    console.log(version, error.response.throttleTimeMs)
  }
}
