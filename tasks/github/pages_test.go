package github

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/githubfake"
)

// A poll reads as many pages as were updated since the last one.
func TestPollReadsAllPages(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	f.talkers()
	look(time.Hour)
	f.hub.Deliver("")
	f.issue("ann", "Broken", "@errand why?")
	missed := f.open(func(pr *githubfake.PR) { pr.Head = "missed" })
	for i := range minPolled {
		f.issue("mallory", fmt.Sprint("Issue ", i), "It is.")
		f.open(func(pr *githubfake.PR) { pr.Head, pr.Draft = fmt.Sprint("draft", i), true })
	}
	look(DefaultPollEvery)
	var got []string
	for _, task := range f.tasks() {
		got = append(got, task.Kind+" "+task.Thread)
	}
	slices.Sort(got)
	want := []string{"comment github/acme/api#1", fmt.Sprintf("review github/acme/api#%d/review", missed)}
	if !slices.Equal(got, want) {
		t.Errorf("tasks %q, want %q", got, want)
	}
}

// What was handled is recorded however much it is, for each repository by itself.
func TestPollRemembersTheNewestRemarks(t *testing.T) {
	t.Parallel()
	f, _ := looker(t)
	p, begun := f.src.newPoller(f.desk), f.src.cfg.Now()
	v := repositoryPoll{repo: repo, handled: handledRemarks{}}
	for i := range 4 * maxHandled {
		v.handled[fmt.Sprintf("p%d.%d", 1_000_000_000+i, i)] = begun.Add(time.Duration(i-4*maxHandled) * time.Second).Unix()
	}
	if err := p.recordHandled(t.Context(), v, begun, false); err != nil {
		t.Fatal(err)
	}
	got := must(p.handledMemo(repo).Load(t.Context()))
	newest := slices.Max(slices.Collect(maps.Values(v.handled)))
	if len(got) != maxHandled || slices.Max(slices.Collect(maps.Values(got))) != newest {
		t.Errorf("%d remarks are remembered", len(got))
	}
	if other := must(p.handledMemo("acme/web").Load(t.Context())); len(other) != 0 {
		t.Errorf("another repository has %d", len(other))
	}
}

// A version that recorded everything in one value has handled what it recorded.
func TestPollStateOfEarlierVersion(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	f.talkers()
	look(time.Hour)
	f.hub.Deliver("")
	n := f.open(func(pr *githubfake.PR) { pr.Draft = true })
	id := f.comment(n, "ann", "/help")
	identity := spot{Place: inConversation, ID: id}.identity()
	p := f.src.newPoller(f.desk)
	err := p.changePollState(t.Context(), func(l *pollState) {
		l.Handled = map[string]handledRemarks{repo: {identity: f.hub.Comments(repo, n)[0].CreatedAt.Unix()}}
	})
	if err != nil {
		t.Fatal(err)
	}
	look(DefaultPollEvery)
	if got := f.ours(n); len(got) != 0 {
		t.Errorf("answered again: %q", got)
	}
	look(DefaultPollEvery)
	if got := f.ours(n); len(got) != 0 {
		t.Errorf("answered again: %q", got)
	}
	var l pollState
	if err := p.changePollState(t.Context(), func(now *pollState) { l = *now }); err != nil || len(l.Handled) != 0 {
		t.Errorf("%v, the one value has %v", err, l.Handled)
	}
}
