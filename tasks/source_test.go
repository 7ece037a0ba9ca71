package tasks

import (
	"context"
	"testing"
)

// The agent speaks with people only where it can also ask them.
func TestTalkAbout(t *testing.T) {
	t.Parallel()
	say := func(context.Context, Task, string) error { return nil }
	ask := func(context.Context, Task, Question) error { return nil }
	all := func(answer bool) func(Task) bool { return func(Task) bool { return answer } }
	for name, tc := range map[string]struct {
		can  Capabilities
		want bool
	}{
		"nothing":       {Capabilities{}, false},
		"says":          {Capabilities{Say: say}, false},
		"says and asks": {Capabilities{Say: say, Ask: ask}, true},
		"about this":    {Capabilities{Say: say, Ask: ask, Talks: all(true)}, true},
		"about others":  {Capabilities{Say: say, Ask: ask, Talks: all(false)}, false},
	} {
		if got := tc.can.TalkAbout(Task{}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
