package rights

import (
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// A repository that is named with the forge's host is the same repository without it; another host's is not.
func TestPolicyKnowsARepositoryByOneName(t *testing.T) {
	t.Parallel()
	p := Policy{Host: "github.com", Repository: func(name string) (Repository, bool) {
		return Repository{}, name == "acme/api"
	}}
	for name, want := range map[string]string{
		"acme/api": "acme/api", "GitHub.com/acme/api": "acme/api", "gitlab.com/acme/api": "", "acme/web": "",
	} {
		got, err := p.Apply(tasks.Task{
			ID: "1700000000000000-test-x", Source: "test", Thread: "t", Class: tasks.Interactive, Prompt: "go", Repo: name,
		})
		if (err == nil) != (want != "") || err == nil && got.Repo != want {
			t.Errorf("%s is %q, %v; want %q", name, got.Repo, err, want)
		}
	}
}

// A secret of the fleet that somebody writes into a request is not stored.
func TestPromptIsRedacted(t *testing.T) {
	t.Parallel()
	p := Policy{Redactor: agent.NewRedactor("hunter-2-secret")}
	got, err := p.Apply(tasks.Task{
		ID: "1700000000000000-test-x", Source: "test", Thread: "t", Class: tasks.Interactive, Prompt: "Use hunter-2-secret.",
	})
	if err != nil || got.Prompt != "Use [redacted]." {
		t.Errorf("stored %q, %v", got.Prompt, err)
	}
}
