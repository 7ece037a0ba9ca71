package people

import (
	"testing"

	"github.com/errand-fleet/errand/tasks"
	"github.com/google/go-cmp/cmp"
)

func TestScopes(t *testing.T) {
	t.Parallel()
	mapped := People{{Name: "Ann Lee", Slack: "U2", GitHub: "ann-acme", Email: "ann@acme.test"}}
	for _, c := range []struct {
		task tasks.Task
		want []string
	}{
		{
			tasks.Task{Source: "slack", Actor: "U1", Channel: "C1", Repo: "Acme/API"},
			[]string{"repo:acme/api", "user:slack/U1", "channel:slack/C1"},
		},
		{tasks.Task{Source: "github", Actor: "dependabot[bot]"}, []string{"user:github/dependabot[bot]"}},
		{tasks.Task{Source: "chat", Actor: "Ann\nof x"}, []string{"user:chat/Ann-of-x"}},
		{tasks.Task{Source: "chat"}, nil},
		{tasks.Task{Source: "slack", Actor: "U2"}, []string{"user:Ann-Lee"}},
		{tasks.Task{Source: "github", Actor: "ANN-acme"}, []string{"user:Ann-Lee"}},
		{tasks.Task{Source: "chat", Actor: "ann@acme.test"}, []string{"user:Ann-Lee"}},
	} {
		if diff := cmp.Diff(c.want, mapped.Scopes(c.task)); diff != "" {
			t.Error(diff)
		}
	}
}
