// Turns the types of Slack's SDK into JSON Schema: of each argument list, answer and event in slack.ts, and of manifests. It says on stdout
// {schemas, defs}. References are #/$defs/NAME.
import { isDeepStrictEqual } from 'node:util'
import { readFileSync } from 'node:fs'
import { createGenerator } from 'ts-json-schema-generator'

const generator = createGenerator({ path: 'slack.ts', tsconfig: 'tsconfig.json', expose: 'all', skipTypeCheck: true, topRef: false, additionalProperties: false })
let answer = false
// The types of answers are made from samples, which lack most kinds of blocks and whatever an app has put into metadata: their fields are checked as
// far as they are known, and others are allowed.
const unknown = ['blocks', 'attachments', 'metadata']
const strip = (v) => {
  if (Array.isArray(v)) return v.map(strip)
  if (!v || typeof v !== 'object') return v
  const { description, $schema, definitions, deprecated, examples, ...rest } = v
  if (answer) {
    delete rest.additionalProperties
    for (const name of unknown) delete rest.properties?.[name]
  }
  return Object.fromEntries(Object.entries(rest).map(([k, w]) => [k, k === 'properties' ? Object.fromEntries(Object.entries(w).map(([n, p]) => [n, strip(p)])) : strip(w)]))
}
const schemas = {}
const defs = {}
for (const [, list, body] of readFileSync('slack.ts', 'utf8').matchAll(/export interface (\w+) \{\n([^}]*)\}/g)) {
  for (const [, name, type] of body.matchAll(/^ {2}'?([\w.]+)'?: (?:api|slack|request)\.(\w+)$/gm)) {
    answer = list === 'Answers'
    const made = generator.createSchema(type)
    const own = Object.fromEntries(Object.entries(made.definitions ?? {}).map(([n, d]) => [n, strip(d)]))
    // Several packages of types use one name for different things, such as Channel.
    const renamed = new Set()
    const safe = (n) => (renamed.has(n) ? `${name}_` : '') + n.replace(/[^\w]/g, '_')
    const rewrite = (v) => {
      if (Array.isArray(v)) return v.map(rewrite)
      if (!v || typeof v !== 'object') return v
      return Object.fromEntries(Object.entries(v).map(([k, w]) => [k, k === '$ref' ? '#/$defs/' + safe(decodeURIComponent(w.slice('#/definitions/'.length))) : rewrite(w)]))
    }
    for (let again = true; again;) {
      again = false
      for (const [n, d] of Object.entries(own)) {
        const known = defs[safe(n)]
        if (known && !isDeepStrictEqual(known, rewrite(d)) && !renamed.has(n)) again = renamed.add(n)
      }
    }
    for (const [n, d] of Object.entries(own)) defs[safe(n)] = rewrite(d)
    schemas[list === 'Others' ? name : `${name} ${list.toLowerCase().replace(/s$/, '')}`] = rewrite(strip(made))
  }
}
console.log(JSON.stringify({ schemas, defs }))
