package attempt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/hold"
)

// A conversation is stored with all repositories that it has been about, or with none if some of them are not known.
func TestConversationKnowsItsRepositories(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle()
	claim, err := f.store.Claim(t.Context(), f.submit(f.task("a", "x")), 0, "w")
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Hold: &hold.Hold{Claim: claim, Detached: t.Context()}, mail: &mailbox{}, result: answer("y")}
	const gone = "gone"
	interrupted := &resumeState{checkpoint: checkpoint{Session: answer("z").Session}}
	knows := &resumeState{checkpoint: checkpoint{Session: answer("z").Session, Repos: []string{"acme/web"}}}
	begins := &resumeState{checkpoint: checkpoint{Session: answer("z").Session, Repos: []string{}}}
	for _, step := range []struct {
		name, repo, damage string
		before             *resumeState
		want               []string
	}{
		{"a new one", "acme/API", "", &resumeState{}, []string{"acme/api"}},
		{"without a repository", "", "", &resumeState{}, []string{"acme/api", ""}},
		{"the same one", "acme/api", "", &resumeState{}, []string{"acme/api", ""}},
		{"after an interruption", "acme/web", "", interrupted, []string{"acme/api", "", "acme/web"}},
		{"lost", "acme/api", "[", &resumeState{}, []string{"acme/api"}},
		{"lost and interrupted", "acme/api", "[", knows, []string{"acme/web", "acme/api"}},
		{"expired while interrupted", "acme/api", gone, knows, []string{"acme/web", "acme/api"}},
		{"expired while a first one was interrupted", "acme/api", gone, begins, []string{"acme/api"}},
		{"lost, and interrupted by an older version", "acme/api", "[", interrupted, nil},
		{"not known before", "acme/api", "", &resumeState{}, nil},
		{"expired while interrupted by an older version", "acme/api", gone, interrupted, nil},
	} {
		switch step.damage {
		case "":
		case gone:
			if err := f.rdb.Del(t.Context(), "errand:session:fake/a").Err(); err != nil {
				t.Fatal(err)
			}
		default:
			f.put("errand:session:fake/a", "meta", step.damage)
		}
		task := f.task("a", "x")
		task.Repo = step.repo
		c, err := w.conversation(t.Context(), task, tasks.Brief{}, step.before, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.saveConversation(r, c, task, setting{})
		notes, err := f.store.Threads.SessionMeta(t.Context(), task.Thread)
		var got rights.Conversation
		if err == nil {
			err = json.Unmarshal(notes, &got)
		}
		if err != nil || !cmp.Equal(got.Repos, step.want) {
			t.Errorf("%s: %q, %v", step.name, got.Repos, err)
		}
	}
}

func TestRememberIsBounded(t *testing.T) {
	t.Parallel()
	var said []agent.Turn
	for range 30 {
		said = remember(said, agent.Turn{Role: agent.User, Text: strings.Repeat("ä", maxTurn)},
			agent.Turn{Role: agent.Assistant, Text: "x"}, agent.Turn{Role: agent.Assistant, Text: "x"},
			agent.Turn{Role: agent.Assistant})
	}
	size := 0
	for i, turn := range said {
		size += len(turn.Text)
		if len(turn.Text) > maxTurn || i > 0 && turn.Role == said[i-1].Role {
			t.Errorf("turn %d: %s with %d bytes", i, turn.Role, len(turn.Text))
		}
	}
	if size > maxSaid || size < maxSaid/2 || said[len(said)-1].Text != "x" {
		t.Errorf("%d turns with %d bytes", len(said), size)
	}
}
