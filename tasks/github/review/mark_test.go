package review

import (
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

func TestMark(t *testing.T) {
	t.Parallel()
	const sha = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
	for _, m := range []mark{
		{part: 1, task: "1700000000000000-github-a", head: sha, ending: tasks.Answered, at: 1_700_000_000_000_001},
		{part: 12, task: "1700000000000000-github-a", head: sha, ending: tasks.TimedOut, at: 1_700_000_000_000_001},
	} {
		if got, ok := readMark(m.String() + "text"); !ok || got != m {
			t.Errorf("got %+v, %t, want %+v", got, ok, m)
		}
	}
	for body, want := range map[string]mark{
		"<!-- errand:review -->\r\n<!-- errand:task=a head=b ending=c at=1 -->\r\n": {
			part: 1, task: "a", head: "b", ending: "c", at: 1,
		},
		"<!-- errand:review -->":                {part: 1},
		"<!-- errand:review part=2 -->\nedited": {part: 2},
	} {
		if got, ok := readMark(body); !ok || got != want {
			t.Errorf("%q: got %+v, %t, want %+v", body, got, ok, want)
		}
	}
	for _, body := range []string{
		"", "text", "text <!-- errand:review -->", " <!-- errand:review -->", "<!-- errand:reviewed -->",
		"<!-- errand:chat -->",
	} {
		if got, ok := readMark(body); ok {
			t.Errorf("%q: got %+v", body, got)
		}
	}
}

func TestMarksByAge(t *testing.T) {
	t.Parallel()
	old := mark{task: "1700000000000000-github-b", at: 5}
	for _, c := range []struct {
		name string
		m    mark
		want int
	}{
		{"the same ending", old, 0},
		{"a later task that ended before", mark{task: "1700000000000001-github-a", at: 4}, -1},
		{
			"of the same second, by chance with an earlier ID, that ended later",
			mark{task: "1700000000000000-github-a", at: 6},
			1,
		},
		{"tried again", mark{task: old.task, at: 6}, 1},
		{"edited away", mark{}, -1},
	} {
		if got := c.m.compare(old); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
