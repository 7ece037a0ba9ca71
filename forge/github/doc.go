// Package github implements [forge.Forge] for github.com and GitHub Enterprise Server, as the user of a token or as an App.
//
// It promises:
//   - Every HTTP attempt ends within 10 seconds, and no credential follows a redirect to another host.
//   - An installation token for git opens one repository; for a read-only repository it allows reading only.
//   - Publish keeps one open pull request per branch. It edits only errand's section of the description, and never merges, approves,
//     closes or marks anything ready.
//   - Rate limits become *forge.LimitError, permanent refusals *forge.RefusedError.
//
// [App.Manifest] lists the permissions and events that the App needs, and [Forge.Diagnose] checks whether it has them. The source of GitHub
// events, tasks/github, uses [Forge.Client] for everything that only GitHub has, such as review comments.
package github
