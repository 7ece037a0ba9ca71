// An emulator of Slack that others wrote. It says on stdout where it is.
import { createEmulator } from 'emulate'

const bot = { app_id: 'A0ERRAND', bot_id: 'B0ERRAND', bot_user_id: 'U0ERRAND' }
const emulator = await createEmulator({
  service: 'slack',
  port: 0,
  seed: {
    slack: {
      users: [{ name: 'ann', real_name: 'Ann', email: 'ann@example.com' }],
      channels: [{ name: 'payments' }],
      oauth_apps: [{ client_id: '1.1', client_secret: 'unused', name: 'errand', redirect_uris: [], scopes: ['chat:write'], bot_name: 'errand', ...bot }],
      tokens: [{ token: 'xoxb-test', type: 'bot', user_id: 'U0ERRAND', ...bot }, { token: 'xoxp-ann', type: 'user', user: 'ann' }],
    },
  },
})
console.log(JSON.stringify({ url: emulator.url }))
