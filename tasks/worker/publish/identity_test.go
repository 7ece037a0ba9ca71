package publish

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/rights"
)

// accounts is a forge that knows everybody's account but one.
type accounts struct{ tasks.Publisher }

func (accounts) Name() string { return "github" }

func (accounts) Address(_ context.Context, _, login string) (string, error) {
	if login = cmp.Or(login, "bot"); login == "gone" {
		return "", forge.ErrNotFound
	}
	return fmt.Sprintf("%s <%d+%[1]s@users.noreply.github.com>", login, len(login)), nil
}

func TestCredit(t *testing.T) {
	t.Parallel()
	const ann = "Ann <1+ann@users.noreply.github.com>"
	const line = askerTrailer + ann
	for message, want := range map[string]string{
		"Fix\n":                            "Fix\n\n" + line + "\n",
		"":                                 "\n\n" + line + "\n",
		"Fix\n\nBody: with a colon":        "Fix\n\nBody: with a colon\n" + line + "\n",
		"Fix\n\nBody\n\nErrand-Run: 1\n\n": "Fix\n\nBody\n\nErrand-Run: 1\n" + line + "\n",
		"Fix: it\n":                        "Fix: it\n\n" + line + "\n",
		"Fix\n\nErrand-Run: 2\n":           "Fix\n\nErrand-Run: 2\n",
		"Fix\n\n" + line + "\n":            "Fix\n\n" + line + "\n",
		"Fix\n\nco-authored-by: A <1+ann@users.noreply.github.com>": "Fix\n\nco-authored-by: A <1+ann@users.noreply.github.com>",
	} {
		if got := credit(message, "1", ann); got != want {
			t.Errorf("%q became %q, want %q", message, got, want)
		}
		if got := credit(message, "1", ""); got != message {
			t.Errorf("without an asker %q became %q", message, got)
		}
	}
}

// The asker is known by their account at the forge or, if they have none, by their address. errand, bots and strangers
// are no co-authors.
func TestIdentities(t *testing.T) {
	t.Parallel()
	people := people.People{
		{Name: "Ann <Lee>", Slack: "U1", GitHub: "ann"},
		{Name: "Bob", Slack: "U2", Email: "bob@example.com"},
		{Name: "Cid", Slack: "U3", GitHub: "gone", Email: "cid@example.com"},
	}
	for name, c := range map[string]struct {
		source, actor, name, fixed string
		author, asker, reviewer    string
	}{
		"slack": {
			"slack", "U1", "", "", "bot <3+bot@users.noreply.github.com>", "Ann Lee <3+ann@users.noreply.github.com>",
			"ann",
		},
		"address":    {"slack", "U2", "", "", "bot <3+bot@users.noreply.github.com>", "Bob <bob@example.com>", ""},
		"no account": {"slack", "U3", "", "", "bot <3+bot@users.noreply.github.com>", "", "gone"},
		"stranger":   {"slack", "U4", "Dee", "", "bot <3+bot@users.noreply.github.com>", "", ""},
		"github": {
			"github", "emma", "", "own <o@example.com>", "own <o@example.com>",
			"emma <4+emma@users.noreply.github.com>", "emma",
		},
		"bot":        {"github", "renovate[bot]", "", "", "bot <3+bot@users.noreply.github.com>", "", ""},
		"errand":     {"github", "bot", "", "", "bot <3+bot@users.noreply.github.com>", "", "bot"},
		"errand's":   {"github", "bot", "", "own <o@example.com>", "own <o@example.com>", "", "bot"},
		"not GitHub": {"schedule", "schedule:nightly", "", "", "bot <3+bot@users.noreply.github.com>", "", ""},
		"gone":       {"github", "gone", "", "", "bot <3+bot@users.noreply.github.com>", "", "gone"},
		"console": {
			"chat", "GitHub/ann", "", "", "bot <3+bot@users.noreply.github.com>",
			"Ann Lee <3+ann@users.noreply.github.com>", "ann",
		},
		"a login": {
			"chat", "GitHub/dora", "", "", "bot <3+bot@users.noreply.github.com>",
			"dora <4+dora@users.noreply.github.com>", "dora",
		},
		"an e-mail": {
			"chat", "dora@private.example", "", "", "bot <3+bot@users.noreply.github.com>",
			"dora <4+dora@users.noreply.github.com>", "dora",
		},
	} {
		b := &Publisher{
			Forge: accounts{}, Author: c.fixed, Policy: rights.Policy{People: people},
			Log: slog.New(slog.DiscardHandler),
		}
		task := tasks.Task{ID: "1", Source: c.source, Actor: c.actor, Name: c.name}
		if login, ok := strings.CutPrefix(c.actor, "GitHub/"); ok {
			task.Login = login
		} else if login, ok := strings.CutSuffix(c.actor, "@private.example"); ok { // GitHub's verified address
			task.Login = login
		}
		author, asker := b.Identities(t.Context(), task)
		if author != c.author || asker != c.asker || b.account(task) != c.reviewer {
			t.Errorf("%s: author %q, asker %q, account %q", name, author, asker, b.account(task))
		}
		if p := b.proposal(task, tasks.Work{}, ""); strings.Contains(p.Asker, "@") ||
			task.Login == "dora" && (p.Asker != "dora" || p.AskerAccount != "") {
			t.Errorf("%s: proposed by %q, account %q", name, p.Asker, p.AskerAccount)
		}
	}
}
