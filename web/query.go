package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

const (
	defaultList = 50
	maxList     = 200
	maxFilter   = 200 // bytes of a word to filter by; nothing that it is compared with is longer, or need be found in full
)

// What tasks can be filtered by, in the order in which people think of them.
var (
	states  = []store.State{store.Waiting, store.Running, store.Absorbed, store.Ended}
	endings = []tasks.EndingKind{
		tasks.Answered, tasks.Failed, tasks.TimedOut, tasks.Stalled, tasks.Cancelled, tasks.Refused, tasks.Lost, tasks.Superseded, tasks.Withdrawn,
	}
)

// query reads which tasks are asked for; a problem's status of 0 means that all is well.
func query(q url.Values) (tasks.Filter, problem) {
	bad := func(detail string) (tasks.Filter, problem) {
		return tasks.Filter{}, problem{http.StatusBadRequest, "Invalid query", detail}
	}
	f := tasks.Filter{
		State: q.Get("state"), Limit: defaultList, Before: q.Get("before"),
		Source: q.Get("source"), Repo: q.Get("repository"), Person: q.Get("person"), Channel: q.Get("channel"),
		Ending: tasks.EndingKind(q.Get("ending")), Text: q.Get("text"),
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxList {
			return bad(fmt.Sprintf("A limit is a number from 1 to %d.", maxList))
		}
		f.Limit = n
	}
	switch {
	case f.State != "" && !slices.Contains(states, store.State(f.State)):
		return bad("A state is one of waiting, running, absorbed and ended.")
	case f.Ending != "" && !slices.Contains(endings, f.Ending):
		return bad("An ending is one of answered, failed, timed_out, stalled, cancelled, refused, lost, superseded and withdrawn.")
	case f.Before != "" && !tasks.ValidID(f.Before):
		return bad("Before is a task's ID, such as next in the answer before.")
	}
	for _, word := range []string{f.Source, f.Repo, f.Person, f.Channel, f.Text} {
		if len(word) > maxFilter {
			return bad(fmt.Sprintf("What to filter by has at most %d bytes.", maxFilter))
		}
	}
	return f, problem{}
}

// values is a filter as a query, without the page: the inverse of query.
func values(f tasks.Filter) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"state": f.State, "source": f.Source, "repository": f.Repo, "person": f.Person, "channel": f.Channel, "ending": string(f.Ending), "text": f.Text,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Limit != defaultList {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}
