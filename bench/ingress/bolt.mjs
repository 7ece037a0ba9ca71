// An app made with Slack's own framework that does what a front door does: it checks the signature, puts the event into a queue, and
// only then answers. BullMQ is what asynq is in the world of Node.
import bolt from '@slack/bolt'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'

const { App, LogLevel } = bolt
const queue = new Queue('slack', { connection: new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null }) })
const app = new App({
  token: process.env.SLACK_BOT_TOKEN, signingSecret: process.env.SLACK_SIGNING_SECRET,
  clientOptions: { slackApiUrl: process.env.SLACK_API_URL }, processBeforeResponse: true, logLevel: LogLevel.ERROR,
})
app.event('app_mention', async ({ event, body }) => { await queue.add('mention', event, { jobId: body.event_id }) })
const server = await app.start({ port: 0, host: '127.0.0.1' })
console.log(`listens at http://127.0.0.1:${server.address().port}`)
process.on('SIGTERM', () => process.exit(0))
