package main

// subject is a package whose code is changed, with the packages whose tests are to notice it.
type subject struct {
	dir   string
	tests []string
}

// subjects are the packages that hold money, secrets, ownership and posting.
var subjects = []subject{ //nolint:gochecknoglobals // a table
	{"agent/internal/egress", []string{"agent/internal/egress"}},
	{"agent/internal/gateway", []string{"agent/internal/gateway"}},
	{"agent/internal/redact", []string{"agent/internal/redact"}},
	{"forge/github", []string{"forge/github", "tasks/github"}},
	{"internal/hostlist", []string{"internal/hostlist"}},
	{"internal/pattern", []string{"internal/pattern"}},
	{"internal/refname", []string{"internal/refname", "workspace"}},
	{"internal/untrusted", []string{"internal/untrusted", "tasks/github"}},
	{"store", []string{"store", "tasks/worker"}},
	{"store/scripts", []string{"store"}},
	{"tasks", []string{"tasks", "tasks/worker"}},
	{"tasks/desk", []string{"tasks/desk", "tasks/worker"}},
	{"tasks/github", []string{"tasks/github"}},
	{"tasks/people", []string{"tasks/people", "tasks/desk"}},
	{"tasks/queue", []string{"tasks/queue", "tasks/desk", "tasks/worker"}},
	{"tasks/rights", []string{"tasks/rights", "tasks/desk"}},
	{"tasks/slack", []string{"tasks/slack"}},
	{"tasks/worker", []string{"tasks/worker"}},
	{"tasks/worker/attempt", []string{"tasks/worker/attempt", "tasks/worker"}},
	{"tasks/worker/hold", []string{"tasks/worker/attempt", "tasks/worker"}},
	{"tasks/worker/machine", []string{"tasks/worker/machine", "tasks/worker"}},
	{"tasks/worker/notices", []string{"tasks/worker/notices", "tasks/worker"}},
	{"tasks/worker/outbox", []string{"tasks/worker/outbox", "tasks/worker"}},
	{"tasks/worker/place", []string{"tasks/worker"}},
	{"tasks/worker/publish", []string{"tasks/worker/publish", "tasks/worker"}},
	{"tasks/worker/recovery", []string{"tasks/worker"}},
	{"web/auth", []string{"web/auth", "web"}},
	{"workspace", []string{"workspace"}},
}
