package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// posted is a message of the bot's with errand's hidden mark.
func posted(t *testing.T, text string, payload map[string]any) slackfake.Message {
	t.Helper()
	mark, err := json.Marshal(map[string]any{"event_type": "errand_task", "event_payload": payload})
	if err != nil {
		t.Fatal(err)
	}
	return slackfake.Message{BotID: "B1", TS: "1.1", Text: text, Metadata: mark}
}

func TestFinalMessagesOfSlack(t *testing.T) {
	t.Parallel()
	mark := func(part, ending string, more ...any) map[string]any {
		m := map[string]any{"task": "t1", "part": part, "ending": ending}
		if len(more) > 0 {
			m["covers"] = more[0]
		}
		return m
	}
	stranger := posted(t, "x", mark("final/1", "7"))
	stranger.BotID = ""
	for name, c := range map[string]struct {
		thread []slackfake.Message
		want   [][]string // what each covers
	}{
		"none": {
			[]slackfake.Message{{Text: "hello"}, posted(t, "On it", mark("status", "")), stranger}, nil,
		},
		"one": {[]slackfake.Message{posted(t, "x", mark("final/1", "7"))}, [][]string{{"t1"}}},
		"in two parts": {[]slackfake.Message{
			posted(t, "x", mark("final/1", "7")), posted(t, "y", mark("final/2.1", "7")),
		}, [][]string{{"t1"}}},
		"one part twice": {[]slackfake.Message{
			posted(t, "x", mark("final/1", "7")), posted(t, "x", mark("final/1", "7")),
		}, [][]string{{"t1"}, {"t1"}}},
		"two endings": {[]slackfake.Message{
			posted(t, "x", mark("final/1", "7")), posted(t, "x", mark("final/1", "8")),
		}, [][]string{{"t1"}, {"t1"}}},
		"covers a list": {
			[]slackfake.Message{posted(t, "x", mark("final/1", "7", []string{"t2", "t3"}))},
			[][]string{{"t1", "t2", "t3"}},
		},
		"covers in a text": {
			[]slackfake.Message{posted(t, "x", mark("final/1", "7", "t1,t2"))}, [][]string{{"t1", "t2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got [][]string
			for _, f := range slackFinals(c.thread) {
				got = append(got, f.covers)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFinalMessagesThatSayWhy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"<@U0ANN> Stopped by ann. Ask again to continue.\n\nANSWER tok00001 .": true,
		"<@U0ANN>\n\nANSWER tok00001 .":                                        false, "<@U0ANN>\n\nDone.": false,
	} {
		thread := []slackfake.Message{posted(t, text, map[string]any{"task": "t1", "part": "final/1", "ending": "7"})}
		if got := slackFinals(thread); len(got) != 1 || got[0].why != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestFinalStatusesOfGitHub(t *testing.T) {
	t.Parallel()
	of := func(id, state, said string) githubfake.Status {
		return githubfake.Status{TargetURL: "http://x/pull/1#" + id, State: state, Description: said}
	}
	got := githubFinals([]githubfake.Status{
		of("t1", "pending", "Reviewing"), of("t2", "success", "Reviewed"),
		of("t1", "success", "Reviewed, see the conversation"), of("t1", "success", "Not reviewed"),
	})
	if len(got) != 3 || got[0].covers[0] != "t2" || !got[1].answer || got[2].answer {
		t.Errorf("%+v", got)
	}
	own := comments([]githubfake.Comment{
		{User: bot, Body: "<!-- errand:review -->\n<!-- x -->\nfirst"},
		{User: bot, Body: "<!-- errand:review part=2 -->\nsecond"},
		{User: "ann", Body: "<!-- errand:review -->\n"},
	})
	if len(own) != 1 {
		t.Errorf("comments: %q", own)
	}
}

// A head that was found by looking has one final message, of one task.
func TestSearched(t *testing.T) {
	t.Parallel()
	e := asked(1, inGitHub)
	e.task, e.pull, e.head = true, 52, "3d8ba44c0ffee"
	finals := searched(e, githubFinals([]githubfake.Status{
		{State: "success", TargetURL: "https://github.example/pull/52#1795461031361612-github-look-52-3d8ba44"},
		{State: "success", TargetURL: "https://github.example/pull/52#" + e.id},
	}))
	if lost, doubled := checkCovered([]event{e}, finals); breaks(lost) || len(doubled.broken) != 1 {
		t.Errorf("lost %v, doubled %v", lost.broken, doubled.broken)
	}
	if lost, doubled := checkCovered([]event{e}, finals[:1]); breaks(lost) || breaks(doubled) {
		t.Errorf("lost %v, doubled %v", lost.broken, doubled.broken)
	}
}
