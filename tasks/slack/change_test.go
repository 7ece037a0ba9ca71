package slack

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

func (f *frontDoor) edit(ts, text string) {
	f.Helper()
	if err := f.Edit(f.Context(), general, ts, text); err != nil {
		f.Error(err)
	}
}

// While a request waits, its author may edit all of it. While it runs, the edit goes to its run. After that an edit has
// no effect unless it mentions errand again.
func TestEdits(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	ts := f.say(ann, general, "", at+"count")
	f.edit(ts, at+"[repo=acme/api] count all")
	f.lastWord(ann, 1, replaced)
	task := f.one()
	equal(t, "amended", []string{task.Prompt, task.Repo}, []string{"count all", "acme/api"})
	f.edit(ts, at+"[size=large] count all")
	equal(t, "a wrong option", strings.HasPrefix(f.word(general, ann, 2), "There is no option"), true)
	f.edit(ts, at+"stop")
	equal(t, "no control", f.one().Prompt, "count all")

	_, claim := f.begin()
	f.edit(ts, at+"count all files")
	got := f.tasks()[0]
	equal(t, "correction", []string{got.Prompt, got.Thread, got.Repo},
		[]string{"I have edited my message. It now reads:\n\ncount all files", task.Thread, "acme/api"})
	correction, ok, err := claim.Take(t.Context(), false, []byte(`{}`))
	if err != nil || !ok || correction.ID != got.ID {
		t.Errorf("taken up %v, %v, %v", correction.ID, ok, err)
	}
	if err := claim.GiveBack(t.Context(), false, got.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.desk.Cancel(t.Context(), got.ID, "test"); err != nil {
		t.Fatal(err)
	}

	f.finish(claim, answered("3"))
	f.edit(ts, at+"count them all")
	equal(t, "after the end", len(f.tasks()), 2)
	f.edit(ts, at+"count them again, "+at)
	f.lastWord(ann, 3, newRequest)
	equal(t, "mentioned again", f.tasks()[0].Prompt, "count them again,")
	equal(t, "tasks", len(f.tasks()), 3)
}

// A message without a mention becomes a request when a mention is edited in.
func TestMentionAfterwards(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	ts := f.say(ann, general, "", "count")
	f.edit(ts, "count all")
	equal(t, "tasks", f.prompts(), []string(nil))
	f.edit(ts, at+"count all")
	equal(t, "tasks", f.prompts(), []string{"count all"})
	f.until("the eyes", func() bool { return slices.Contains(f.Reactions(general, ts), "eyes") })
	f.edit(f.say(ann, general, "", "help"), at+"[what=ever] help")
	f.word(general, ann, 1)
}

// Only a message's author can edit or withdraw the request.
func TestEditsOfOthers(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	ts := f.say(ann, general, "", at+"count")
	version := func(user, text string, fields ...any) map[string]any {
		m := map[string]any{
			"type": "message", "user": user, "text": text, "ts": ts,
			"edited": map[string]any{"user": user, "ts": "1700000001.000000"},
		}
		for i := 0; i < len(fields); i += 2 {
			name, _ := fields[i].(string)
			m[name] = fields[i+1]
		}
		return m
	}
	change := func(subtype string, message, previous map[string]any, fields ...any) map[string]any {
		e := map[string]any{
			"type": "message", "subtype": subtype, "channel": general, "channel_type": "channel",
			"ts": "1700000001.000100", "message": message, "previous_message": previous,
		}
		for i := 0; i < len(fields); i += 2 {
			name, _ := fields[i].(string)
			e[name] = fields[i+1]
		}
		return e
	}
	before := version(ann, at+"count")
	for name, event := range map[string]map[string]any{
		"by someone else": change(changed, version(ann, at+"delete all", "edited",
			map[string]any{"user": bob, "ts": "1700000001.000000"}), before),
		"of someone else":        change(changed, version(bob, at+"delete all"), version(bob, at+"count")),
		"not edited":             change(changed, version(ann, at+"delete all", "edited", nil), before),
		"a preview":              change(changed, version(ann, at+"count", "attachments", []any{}), before),
		"of a bot":               change(changed, version(ann, at+"delete all", "bot_id", "B0OTHER"), before),
		"nothing but mention":    change(changed, version(ann, at), before),
		"odd ts":                 change(changed, version(ann, at+"delete all", "ts", "now"), before),
		"odd":                    change(changed, map[string]any{"ts": 7}, before),
		"someone else's is gone": change(deleted, nil, version(bob, at+"count"), "deleted_ts", ts),
		"nobody's is gone":       change(deleted, nil, map[string]any{}, "deleted_ts", ts),
		"another is gone":        change(deleted, nil, before, "deleted_ts", "1700000000.000100"),
	} {
		t.Log(name)
		f.send(event, 200)
	}
	equal(t, "prompt", f.one().Prompt, "count")
	equal(t, "state", f.state(f.one().ID).State, "waiting")
	equal(t, "told", len(f.Ephemeral(general, ann))+len(f.Ephemeral(general, bob)), 0)
}

// A waiting request that is deleted disappears with all of errand's messages about it; a running one does not.
func TestDeletion(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	root := f.say(ann, general, "", at+"one")
	first, _ := f.begin()
	reply := f.say(ann, general, root, at+"[model=opus] two")
	second := f.tasks()[0]
	f.until("what it waits for", func() bool { return len(f.posted(second)) == 1 })

	f.edit(root, "") // leaves a tombstone
	equal(t, "running", f.state(first.ID).State, "running")
	f.edit(reply, "")
	st := f.state(second.ID)
	equal(t, "withdrawn", st.Ending.Kind, tasks.Withdrawn)
	r := f.open(f.source, second)
	for range 2 {
		if err := r.Close(t.Context(), *st.Ending); err != nil {
			t.Error(err)
		}
	}
	equal(t, "left over", len(f.posted(second)), 0)
	if said := f.log.String(); said != "" {
		t.Errorf("log: %s", said)
	}

	alone := f.say(bob, general, "", at+"three")
	third := f.tasks()[0]
	f.edit(alone, "")
	st = f.state(third.ID)
	equal(t, "withdrawn", st.Ending.Kind, tasks.Withdrawn)
	if err := f.open(f.source, third).Close(t.Context(), *st.Ending); err != nil {
		t.Error(err)
	}
	equal(t, "said", len(f.Messages(general, alone)), 0)
}

// Edits and deletions arrive by Socket Mode as well.
func TestEditBySocket(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{AppToken: "xapp-test"}, rights.Policy{}, slackfake.Config{})
	f.Deliver("")
	f.until("the connection", func() bool { return f.Sockets() == 1 })
	ts := f.say(ann, general, "", at+"count")
	f.edit(ts, at+"count all")
	equal(t, "prompt", f.one().Prompt, "count all")
	f.edit(ts, "")
	equal(t, "state", f.state(f.one().ID).State, "ended")
}
