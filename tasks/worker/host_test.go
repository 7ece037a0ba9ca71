package worker

import (
	"context"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/google/go-cmp/cmp"
)

// The operator's rules apply to every run, and calls that they leave to a person are denied while the source cannot
// ask.
func TestRulesReachTheRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Rules = []agent.Rule{{Tool: "Bash", Input: "*git push*", Action: agent.Ask, Reason: "It is public."}}
	answers := make(chan []agent.Decision, 1)
	f.agent.do = func(ctx context.Context, _ agent.Spec, h agent.Host) (agent.Result, error) {
		answers <- []agent.Decision{
			h.Permit(ctx, agent.ToolRequest{Tool: "Bash", Reason: "It is public."}),
			h.Permit(ctx, agent.ToolRequest{Tool: "AskUserQuestion", Human: true}),
			h.Permit(ctx, agent.ToolRequest{Tool: "Bash"}),
		}
		return answer("done"), nil
	}
	f.worker()
	f.ending(f.submit(f.task("rules", "push it")))
	if diff := cmp.Diff(f.policy.Rules, f.agent.specs()[0].Rules); diff != "" {
		t.Error(diff)
	}
	got := <-answers
	if got[0].Allow || !strings.Contains(got[0].Reason, "It is public.") || got[1].Allow ||
		!strings.Contains(got[1].Reason, "state your assumptions") ||
		got[2].Allow || strings.Contains(got[2].Reason, "Reason:") {
		t.Errorf("answers = %+v", got)
	}
}
