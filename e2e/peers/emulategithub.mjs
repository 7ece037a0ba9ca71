// An emulator of GitHub that others wrote, with an App that is installed at acme, and the commits and branches of a repository that git serves
// elsewhere: the emulator has no git remote. The App is made of a manifest. It says on stdout where it is, and with which key the App signs.
import { execFileSync } from 'node:child_process'
import { createEmulator } from 'emulate'

const { REPOSITORY: dir, MANIFEST } = process.env
const manifest = JSON.parse(MANIFEST)
const emulator = await createEmulator({
  service: 'github',
  port: 0,
  seed: {
    tokens: { ghp_ann: { login: 'ann', scopes: ['repo'] } },
    github: {
      users: [{ login: 'ann', name: 'Ann', email: 'ann@example.com' }],
      orgs: [{ login: 'acme', name: 'Acme', members: [{ login: 'ann', role: 'admin' }] }],
      repos: [{ owner: 'acme', name: 'api', auto_init: false }],
      apps: [{
        app_id: 77, slug: 'errand', name: manifest.name, permissions: manifest.default_permissions, events: manifest.default_events,
        webhook_url: manifest.hook_attributes.url, webhook_secret: 'github-secret',
        installations: [{ installation_id: 5, account: 'acme', repository_selection: 'all' }],
      }],
    },
  },
})

const git = (...args) => execFileSync('git', ['-C', dir, ...args])
const lines = (...args) => git(...args).toString().trim().split('\n')
const post = async (what, body) => {
  const response = await fetch(`${emulator.url}/repos/acme/api/git/${what}`, {
    method: 'POST', body: JSON.stringify(body), headers: { Authorization: 'Bearer ghp_ann', 'Content-Type': 'application/json' },
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(`${what}: ${response.status} ${JSON.stringify(answer)}`)
  return answer.sha
}
for (const commit of lines('rev-list', '--reverse', '--all')) {
  const tree = []
  for (const line of lines('ls-tree', '-r', commit)) {
    const [, mode, type, sha, path] = line.match(/^(\d+) (\w+) (\w+)\t(.*)$/)
    await post('blobs', { content: git('cat-file', 'blob', sha).toString('base64'), encoding: 'base64' })
    tree.push({ mode, type, sha, path })
  }
  const [parents, an, ae, ad, cn, ce, cd, ...message] = git('log', '-1', '--format=%P%n%an%n%ae%n%aI%n%cn%n%ce%n%cI%n%B', commit).toString().trimEnd().split('\n')
  const made = await post('commits', {
    tree: await post('trees', { tree }), parents: parents.split(' ').filter(Boolean), message: message.join('\n'),
    author: { name: an, email: ae, date: ad }, committer: { name: cn, email: ce, date: cd },
  })
  if (made !== commit) throw new Error(`the commit ${commit} is ${made} in the emulator`)
}
for (const line of lines('for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads')) {
  const [sha, ref] = line.split(' ')
  await post('refs', { ref, sha })
}
console.log(JSON.stringify({ url: emulator.url, key: emulator.generatedSecrets.find((s) => s.kind === 'github.app_private_key').value }))
