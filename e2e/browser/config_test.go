package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// The configuration page of a front door with errand.yaml, a mistake in the environment and a worker that differs.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "errand.yaml")
	if err := os.WriteFile(file, []byte(`
repositories: {acme/payments: {trusted: true, base: develop}, acme/handbook: {profile: read}}
channels: {C0123ABCD: {repository: acme/payments}}
people: {ann: {slack: U0123ABCD, github: ann-acme, email: ann@example.com}}
roles: [{role: admin, people: [ann@example.com]}, {role: user, groups: [engineering], repositories: ["acme/*"]}]
limits: {repository: 3, user: 2}
budgets: {task: 5, day: 200}
rules: [{tool: Bash, input: "*git push*", action: deny, reason: errand publishes the work.}]
mcp: {tickets: {command: /usr/local/bin/tickets-mcp}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newConsole(t, "ERRAND_CONFIG="+file, "ERRAND_MODELS=opus", "ERRAND_RUN_LIMIT=1h",
		"ANTHROPIC_API_KEY=sk-a-secret")
	c.alive(store.Worker{ID: "a", Host: "mill-1", Digest: "0a1b2c3d"}, agent.Health{OK: true})
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			tb := c.tab(t)
			tb.as(l)
			tb.visit(visit{name: "config", path: "/config", want: "a setting that all processes share, differs"})
			for _, name := range []string{"config", "config-all"} {
				tb.fits(name)
				tb.accessible(name)
				tb.keep(fmt.Sprintf("%s/%s-%s.png", out, name, l.name), tb.shoot(true))
				eval[bool](tb, `for (const d of document.querySelectorAll("main details")) d.open = true; true`)
			}
			tb.find("main", "ERRAND_RUN_MEMORY_GB")
			tb.check()
		})
	}
}
