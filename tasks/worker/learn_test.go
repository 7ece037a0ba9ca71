package worker

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
)

// The result of a task lists the hosts that its run, its set-up and its checks have reached, if they are to be listed.
func TestLearnedHosts(t *testing.T) {
	t.Parallel()
	for name, learn := range map[string]bool{"learn": true, "any": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, with := publishingFleet(t, nil)
			r.declare("main", "setup: [npm ci]\n")
			h.checks = []string{"make test"}
			reached := func(hosts ...string) *agent.EgressReport {
				return &agent.EgressReport{Learn: learn, Reached: hosts}
			}
			r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
				r.everything(s)
				done := answer("done")
				done.Egress = reached("run.example")
				return done, nil
			}
			var scripts []agent.Script
			setUp := leaves(&scripts, agent.Scripted{Outcome: agent.Done, Egress: reached("setup.example")})
			r.agent.script = func(ctx context.Context, s agent.Script) (agent.Scripted, error) {
				done, err := setUp(ctx, s)
				if s.Line == "make test" {
					done.Egress = reached("check.example", "run.example")
				}
				return done, err
			}
			r.worker(r.disk(t.TempDir()), with)
			want := reached("run.example")
			if learn {
				want = reached("check.example", "run.example", "setup.example")
			}
			if diff := cmp.Diff(want, r.ending(r.submit(r.repoTask("a"))).Result.Egress); diff != "" {
				t.Error(diff)
			}
		})
	}
}
