package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/internal/instructions"
)

// A long text arrives in numbered pieces, once for each agent until its own conversation is compacted.
func TestInstructorTellsEachAgentOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word\n", 4_000)
	i := newInstructor(&Spec{Dir: "/c", Instructions: []Instructions{{
		Repo: "acme/api", Dir: "/c", Set: instructions.Set{Texts: []instructions.Text{
			{Name: "x/CLAUDE.md", Paths: []string{"x/**"}, Text: long},
		}},
	}}})
	call := func(ctx context.Context, event, agent string) string {
		in := protocol.HookInput{Event: event, Agent: agent}
		if err := json.Unmarshal([]byte(`{"file_path":"/c/x/y"}`), &in.Input); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(i.answer(ctx, in))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := call(ended, "PostToolUse", ""); got != "{}" {
		t.Errorf("after the end: %.100s", got)
	}
	all := func(agent string) {
		t.Helper()
		for n := range 3 {
			part := fmt.Sprintf("(Part %d of 3 of the text that begins with", n+1)
			if got := call(t.Context(), "PostToolUse", agent); !strings.Contains(got, part) {
				t.Errorf("%q got %.200s instead of part %d", agent, got, n+1)
			}
		}
	}
	all("")
	all("sub")
	call(t.Context(), "PreCompact", "sub")
	if got := call(t.Context(), "PostToolUse", ""); got != "{}" {
		t.Errorf("told again: %.100s", got)
	}
	all("sub")
}

// Each repository's skills are a plugin of their own, also if their names are the same in the CLI's letters.
func TestPluginsHaveDifferentNames(t *testing.T) {
	t.Parallel()
	var s Spec
	for _, repo := range []string{"x/acme-api", "a/api", "acme/api"} {
		s.Instructions = append(s.Instructions, Instructions{Repo: repo, Set: instructions.Set{
			Skills: []instructions.File{{Name: "skills/a/SKILL.md"}},
		}})
	}
	names := s.plugins()
	slices.Sort(names)
	if got := len(slices.Compact(names)); got != len(s.Instructions) {
		t.Errorf("%d names of %d repositories: %q", got, len(s.Instructions), s.plugins())
	}
}
