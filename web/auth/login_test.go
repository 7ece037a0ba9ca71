package auth

import (
	"testing"
	"time"
)

func TestInvitationsExpire(t *testing.T) {
	t.Parallel()
	var i invites
	now := time.Now()
	for code, want := range map[string]bool{"in time": true, "late": false} {
		i.add(code, now)
		at := now.Add(inviteTime)
		if want {
			at = at.Add(-time.Second)
		}
		if got := i.take(code, at); got != want {
			t.Errorf("%s: %t", code, got)
		}
	}
	if len(i.until) != 0 {
		t.Errorf("used invitations are kept: %v", i.until)
	}
}
