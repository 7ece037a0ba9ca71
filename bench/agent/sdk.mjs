// Reads a session with the official SDK, as a program would that shows what the agent does: every message, the partial ones too. It
// only counts them. Loading the SDK is not counted, in its favour.
import { readFileSync } from 'node:fs'
import { query } from '@anthropic-ai/claude-agent-sdk'

const [cli, session] = process.argv.slice(2)
const cpu = () => { const used = process.cpuUsage(); return used.user + used.system }

const begun = { wall: performance.now(), cpu: cpu() }
let lines = 0
const messages = query({
  prompt: `replay ${session}`,
  options: {
    pathToClaudeCodeExecutable: cli,
    env: { ...process.env, ERRAND_BENCH_ROLE: 'cli' },
    includePartialMessages: true,
    settingSources: [],
  },
})
for await (const _ of messages) lines++

console.log(JSON.stringify({
  wall: Math.round((performance.now() - begun.wall) * 1000),
  cpu: cpu() - begun.cpu,
  rss: Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]),
  lines,
}))
