package console

import (
	"testing"

	"github.com/errand-fleet/errand/tasks/desk"
)

func TestAuditInWords(t *testing.T) {
	t.Parallel()
	const task = "1795977234251384-slack-c0payments"
	for what, want := range map[string][3]string{ // result, words, leads
		"POST /tasks/" + task + "/cancel":           {"/tasks/" + task, "stopped", "task b90wcne"},
		"POST /api/tasks/" + task + "/answer":       {"", "answered", "task b90wcne"},
		"POST /chat":                                {"/chat/sums?sent#latest", "started", "a conversation"},
		"POST /fleet/classes/interactive/pause":     {"/fleet", "paused interactive", ""},
		"POST /fleet/environments/acme/api/rebuild": {"", "rebuilt the environment acme/api", ""},
		"DELETE /api/tokens/ci":                     {"", "revoked token ci", ""},
		"retry":                                     {task, "retried", "task b90wcne"},
		"approve the fork of acme/api#1":            {task, "approve the fork of acme/api#1", "task b90wcne"},
		"POST /fleet/classes//pause":                {"", "POST /fleet/classes//pause", ""},
	} {
		row := newAuditRow(desk.AuditEntry{What: what, Result: want[0], Status: 200})
		leads := ""
		if row.To() != "" {
			leads = row.Leads()
		}
		if row.Words() != want[1] || leads != want[2] {
			t.Errorf("%s: %q, %q", what, row.Words(), leads)
		}
	}
}
