// All payloads that the community has collected, signed by GitHub's own library and delivered one after the other. It says on stdout how each
// was answered, as JSON.
import { Webhooks } from '@octokit/webhooks'
import examples from '@octokit/webhooks-examples' with { type: 'json' }

const { WEBHOOK_URL: url, WEBHOOK_SECRET: secret } = process.env
const webhooks = new Webhooks({ secret })
const answers = []
for (const { name, examples: payloads } of examples) {
  for (const [i, payload] of payloads.entries()) {
    const body = JSON.stringify(payload)
    const id = `${name}-${i}`.replaceAll('_', '-')
    const response = await fetch(url, {
      method: 'POST',
      body,
      headers: {
        'Content-Type': 'application/json', 'User-Agent': 'GitHub-Hookshot/octokit', 'X-GitHub-Event': name, 'X-GitHub-Delivery': id,
        'X-Hub-Signature-256': await webhooks.sign(body),
      },
    })
    answers.push({ id, action: payload.action ?? '', status: response.status, said: (await response.text()).trim() })
  }
}
console.log(JSON.stringify(answers))
