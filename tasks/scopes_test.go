package tasks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		task Task
		want []string
	}{
		{Task{Source: "slack", Actor: "U1", Channel: "C1", Repo: "Acme/API"}, []string{"repo:acme/api", "user:slack/U1", "channel:slack/C1"}},
		{Task{Source: "github", Actor: "dependabot[bot]"}, []string{"user:github/dependabot[bot]"}},
		{Task{Source: "chat", Actor: "Ann\nof x"}, []string{"user:chat/Ann-of-x"}},
		{Task{Source: "chat"}, nil},
	} {
		if diff := cmp.Diff(c.want, c.task.scopes()); diff != "" {
			t.Error(diff)
		}
	}
}
