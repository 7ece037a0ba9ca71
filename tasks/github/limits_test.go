package github

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
)

const secondaryDocs = `"documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"`

// A final message that a rate limit delays is posted once in the end, and looked for before a task is repeated, by any
// process and for any limit.
func TestLimitsHoldUpTheFinalMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f    githubfake.Failure
		wait time.Duration
	}{
		"Retry-After": {
			githubfake.Failure{Status: 429, Header: http.Header{"Retry-After": {"120"}}}, 2 * time.Minute,
		},
		"secondary, Retry-After": {githubfake.Failure{
			Status: 403, Header: http.Header{"Retry-After": {"120"}}, Body: `{` + secondaryDocs + `}`,
		}, 2 * time.Minute},
		"secondary": {
			githubfake.Failure{Status: 403, Body: `{"message":"You have exceeded a secondary rate limit."}`},
			time.Minute,
		},
		"reset": {
			githubfake.Failure{Status: 403, Header: http.Header{"X-Ratelimit-Remaining": {"0"}}}, 30 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(w *world) {
				f := c.f
				if name == "reset" { // now: this runs long after the test began
					f.Header = f.Header.Clone()
					f.Header.Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(c.wait).Unix(), 10))
				}
				n, talk, _ := w.talk()
				for _, task := range []tasks.Task{talk, w.task(n, 0)} {
					w.src = w.again() // go-github remembers a limit, and asks nothing until it is over
					held := func(what string, err error) {
						w.Helper()
						e, ok := errors.AsType[*tasks.ErrLater](err)
						if !ok || time.Until(e.At) > c.wait || time.Until(e.At) < c.wait-30*time.Second {
							w.Errorf("%s: %s: %v", task.Kind, what, err)
						}
						w.src = w.again()
					}
					before := len(w.hub.Comments(repo, n))
					final := func() (*tasks.Ending, error) { return w.src.Final(w.Context(), task, time.Time{}) }
					w.hub.Fail(createComment, f)
					held("post", w.report(task).Close(w.Context(), answered("Because.")))
					if e, err := final(); e != nil || err != nil {
						w.Errorf("%s: found %+v, %v", task.Kind, e, err)
					}
					w.close(task, answered("Because."))
					w.hub.Fail(listComments, f)
					held("post again", w.report(task).Close(w.Context(), answered("Because.")))
					w.hub.Fail(listComments, f)
					_, err := final()
					held("look", err)
					if e, err := final(); err != nil || e == nil || e.Kind != tasks.Answered || !e.At.Equal(ended) {
						w.Errorf("%s: found %+v, %v", task.Kind, e, err)
					}
					w.close(task, answered("Because."))
					if got := len(w.hub.Comments(repo, n)) - before; got != 1 {
						w.Errorf("%s: %d comments", task.Kind, got)
					}
				}
			})
		})
	}
}
