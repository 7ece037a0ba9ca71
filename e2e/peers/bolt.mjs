// An app made with Slack's own framework. It says on stdout that it is up, and with which port; all else that it does is in Slack.
import bolt from '@slack/bolt'

const { App, SocketModeReceiver } = bolt
const env = process.env
const clientOptions = { slackApiUrl: env.SLACK_API_URL }
const receiver = env.SLACK_APP_TOKEN && new SocketModeReceiver({
  appToken: env.SLACK_APP_TOKEN, installerOptions: { clientOptions }, clientPingTimeout: 1000, serverPingTimeout: 2000,
})
const app = new App({ token: env.SLACK_BOT_TOKEN, clientOptions, ...(receiver ? { receiver } : { signingSecret: env.SLACK_SIGNING_SECRET }) })

const button = { type: 'actions', elements: [{ type: 'button', action_id: 'approve', value: '7', text: { type: 'plain_text', text: 'Approve' } }] }

app.event('app_mention', async ({ event, say, client }) => {
  const { channel, ts, user } = event
  await client.reactions.add({ channel, timestamp: ts, name: 'eyes' })
  const status = await say({ text: 'working', thread_ts: ts, metadata: { event_type: 'peer', event_payload: { part: 'status' } } })
  await client.chat.update({ channel, ts: status.ts, text: 'still working' })
  await client.chat.postEphemeral({ channel, user, text: 'only you see this' })
  const { user: person } = await client.users.info({ user })
  const { messages } = await client.conversations.replies({ channel, ts, include_all_metadata: true })
  const { permalink } = await client.chat.getPermalink({ channel, message_ts: status.ts })
  await client.files.uploadV2({ channel_id: channel, thread_ts: ts, filename: 'notes.txt', content: 'some notes', initial_comment: 'a file' })
  const answer = `${person.name} said ${messages[0].text}; then ${messages[1].metadata.event_payload.part} at ${new URL(permalink).pathname}`
  await say({ text: answer, thread_ts: ts, blocks: [{ type: 'markdown', text: answer }, button] })
  await client.reactions.remove({ channel, timestamp: ts, name: 'eyes' })
  await client.reactions.add({ channel, timestamp: ts, name: 'white_check_mark' })
})

app.action('approve', async ({ ack, action, body, client }) => {
  await ack()
  await client.chat.update({ channel: body.channel.id, ts: body.message.ts, text: `${action.value} approved by ${body.user.id}`, blocks: [] })
})

app.message('hello', async ({ message, say }) => { await say(`hello ${message.user}, in ${message.channel_type}`) })

const server = await app.start(receiver ? undefined : 0)
console.log(JSON.stringify({ port: receiver ? 0 : server.address().port }))
