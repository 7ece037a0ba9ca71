package autofix

import "testing"

func TestOwnBranches(t *testing.T) {
	t.Parallel()
	for branch, want := range map[string]bool{
		"errand/slack-0123456789": true, "errand/x": true, "bot/slack-0123456789": true,
		"team/bot_x/github-abcdef0123": true, "bot/schedule-0123456789": true, "bot/hook-0123456789": true,
		"x/chat-0123456789": true, "create-pull-request/patch-1569322532": false, "slack-0123456789": false,
		"bot/slack-0123": false, "feature/total": false, "Bot/slack-0123456789": false,
	} {
		if got := ownBranches.MatchString(branch); got != want {
			t.Errorf("%s: %v", branch, got)
		}
	}
}
