package github

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// A poll reads as many pages of issues as were updated since the last one.
func TestPollReadsAllPages(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	f.talkers()
	look(time.Hour)
	f.hub.Deliver("")
	f.issue("ann", "Broken", "@errand why?")
	for i := range minPolled {
		f.issue("mallory", fmt.Sprint("Issue ", i), "It is.")
	}
	look(DefaultPollEvery)
	if task := f.only(); task.Kind+" "+task.Thread != "comment github/acme/api#1" {
		t.Errorf("%+v", task)
	}
}

// beforePage does something once, before a page of a repository's pull requests that follows the first minPolled.
type beforePage struct {
	once sync.Once
	do   func()
}

func (b *beforePage) RoundTrip(r *http.Request) (*http.Response, error) {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	if strings.HasSuffix(r.URL.Path, "/pulls") && (page-1)*size >= minPolled {
		b.once.Do(b.do)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A pull request that is closed between two pages moves the others, and hides none of them.
func TestPollMissesNothingBetweenPages(t *testing.T) {
	t.Parallel()
	between := new(beforePage)
	f, look := looker(t, func(c *config) { c.Hub.HTTP = &http.Client{Transport: between} })
	f.talkers()
	look(time.Hour)
	f.hub.Deliver("")
	want := map[string]bool{}
	last := 0
	for i := range minPolled + 25 { // a second page, after what every poll reads
		last = f.open(func(pr *githubfake.PR) { pr.Head = fmt.Sprint("missed", i) })
		want[fmt.Sprintf("github/acme/api#%d/review", last)] = true
	}
	closed := false
	between.do = func() {
		closed = true
		if err := f.hub.ChangePR(t.Context(), repo, last, "closed", "ann"); err != nil {
			t.Error(err)
		}
	}
	look(DefaultPollEvery)
	for _, task := range f.tasks() {
		delete(want, task.Thread)
	}
	delete(want, fmt.Sprintf("github/acme/api#%d/review", last))
	if !closed {
		t.Error("nothing was closed between two pages")
	}
	if len(want) > 0 {
		t.Errorf("without a review: %v", slices.Sorted(maps.Keys(want)))
	}
}
