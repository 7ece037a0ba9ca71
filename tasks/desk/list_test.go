package desk

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/google/go-cmp/cmp"
)

func TestTasksAreFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	put := func(source, repo, actor, prompt string) string {
		task := f.task(actor, prompt)
		task.Channel = "C-" + actor
		task.ID, task.Source, task.Repo, task.Actor = tasks.NewID(time.UnixMicro(1_700_000_000_000_000+int64(f.n)),
			source, actor), source, repo, actor
		return f.submit(task)
	}
	ann := put("slack", "acme/API", "U1", "Mend the <build>, \"quickly\"")
	bob := put("github", "acme/api", "bob", "Review pull request #1")
	sue := put("github", "", "Sue Ann", "ÄNDERE es")
	u1 := put("chat", "acme/web", "U1", "Nothing")
	if _, err := record.EndWaiting(t.Context(), f.store, bob,
		tasks.Ending{Kind: tasks.Refused, Result: agent.Result{Text: "nothing"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := record.EndWaiting(t.Context(), f.store, sue, tasks.Ending{Kind: tasks.Failed}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		filter Filter
		want   []string
	}{
		"all":                   {Filter{}, []string{u1, sue, bob, ann}},
		"state":                 {Filter{State: "waiting"}, []string{u1, ann}},
		"source":                {Filter{Source: "github"}, []string{sue, bob}},
		"repository":            {Filter{Repo: "Acme/api"}, []string{bob, ann}},
		"no part of one":        {Filter{Repo: "api"}, nil},
		"person":                {Filter{Person: "u1"}, []string{u1, ann}},
		"person of a source":    {Filter{Person: "slack/U1"}, []string{ann}},
		"person with two names": {Filter{Person: "sue  ann"}, []string{sue}},
		"channel":               {Filter{Channel: "c-U1"}, []string{u1, ann}},
		"channel of a source":   {Filter{Channel: "slack/C-U1"}, []string{ann}},
		"ending":                {Filter{Ending: tasks.Refused}, []string{bob}},
		"ending and state":      {Filter{Ending: tasks.Refused, State: "waiting"}, nil},
		"text":                  {Filter{Text: "the <BUILD>, \"q"}, []string{ann}},
		"text beyond ASCII":     {Filter{Text: "ändere"}, []string{sue}},
		"text of the answer":    {Filter{Text: "nothing", Source: "github"}, nil},
		"ID":                    {Filter{Text: u1}, []string{u1}},
		"short ID":              {Filter{Text: display.TaskID(sue)}, []string{sue}},
		"part of all IDs":       {Filter{Text: "chat"}, nil},
		"part of short IDs":     {Filter{Text: display.TaskID(sue)[:1]}, nil},
		"several": {
			Filter{Source: "github", Repo: "acme/api", Text: "review", Ending: tasks.Refused}, []string{bob},
		},
		"class":         {Filter{Class: tasks.Interactive, Source: "chat"}, []string{u1}},
		"another class": {Filter{Class: tasks.Review}, nil},
		"days":          {Filter{Days: 1}, nil}, // they are from 2023
		"page":          {Filter{Person: "U1", Limit: 1, Before: u1}, []string{ann}},
	} {
		l, err := f.desk.List(t.Context(), test.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range l.Tasks {
			got = append(got, s.Task.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// A part of an ID finds the only task that it fits, of those that the visitor may see.
func TestFind(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	put := func(thread, repo string) string {
		task := f.task(thread, "x")
		task.Repo = repo
		return f.submit(task)
	}
	ours, theirs := put("a", "acme/app"), put("b", "other/app")
	sees := people.WithVisitor(t.Context(), people.Visitor{
		Name: "ann", Role: policy.User, In: func(_ context.Context, repo string) policy.Repo {
			if repo == "acme/app" {
				return policy.Repo{Role: policy.User}
			}
			return policy.Repo{}
		},
	})
	for _, test := range []struct {
		ctx        context.Context
		part, want string
	}{
		{t.Context(), theirs, theirs},
		{t.Context(), display.TaskID(theirs), theirs},
		{t.Context(), display.TaskID(ours)[:6], ours},
		{t.Context(), ours[:8], ""}, // it fits both
		{sees, ours[:8], ours},
		{sees, display.TaskID(theirs), ""},
		{t.Context(), "!!!!", ""},
	} {
		if got, err := f.desk.Find(test.ctx, test.part); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v; want %q", test.part, got, err, test.want)
		}
	}
}

// An overview has the tasks by state, counts them all, and takes out those whose questions the visitor may answer.
func TestOverview(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	put := func(thread, repo string) string {
		task := f.task(thread, "x")
		task.Repo = repo
		return f.submit(task)
	}
	claim := func(id string) *store.Claim {
		c, err := f.store.Claim(t.Context(), id, 0, "w")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ended := put("a", "acme/api")
	if _, err := record.EndWaiting(t.Context(), f.store, ended, tasks.Ending{Kind: tasks.Failed}); err != nil {
		t.Fatal(err)
	}
	asking, quiet, other := put("b", "acme/api"), put("c", "acme/api"), put("d", "acme/web")
	for _, id := range []string{asking, other} {
		if _, err := claim(id).Ask(t.Context(), "k", []byte(`{"key":"k","text":"Which?"}`)); err != nil {
			t.Fatal(err)
		}
	}
	claim(quiet)
	first, second := put("e", "acme/api"), put("f", "acme/web")
	user := people.WithVisitor(t.Context(), people.Visitor{Name: "ann", Role: policy.User, In: func(_ context.Context, repo string) policy.Repo {
		return policy.Repo{Role: map[string]policy.Role{"acme/api": policy.User, "acme/web": policy.Viewer}[repo]}
	}})
	narrow := people.WithVisitor(t.Context(), people.Visitor{Name: "ann", Role: policy.User, In: func(_ context.Context, repo string) policy.Repo {
		return policy.Repo{Role: map[string]policy.Role{"acme/web": policy.User}[repo]}
	}})
	for name, test := range map[string]struct {
		ctx    context.Context
		filter Filter
		want   [][]string // asking, running, waiting, ended
		counts store.Counts
	}{
		"all": {
			t.Context(),
			Filter{}, // the default limit
			[][]string{{other, asking}, {quiet}, {second, first}, {ended}},
			store.Counts{Running: 3, Waiting: 2},
		},
		"bounded": {
			t.Context(),
			Filter{Limit: 1},
			[][]string{{other, asking}, {quiet}, {second}, {ended}},
			store.Counts{Running: 3, Waiting: 2},
		},
		"filtered": {
			t.Context(),
			Filter{Limit: 10, Repo: "acme/web"},
			[][]string{{other}, nil, {second}, nil},
			store.Counts{Running: 1, Waiting: 1},
		},
		"bounded and filtered": {
			t.Context(),
			Filter{Limit: 1, Source: "fake"},
			[][]string{{other, asking}, {quiet}, {second}, {ended}},
			store.Counts{Running: 3, Waiting: 1},
		},
		"as many as fit, filtered": {
			t.Context(),
			Filter{Limit: 2, Source: "fake"},
			[][]string{{other, asking}, {quiet}, {second, first}, {ended}},
			store.Counts{Running: 3, Waiting: 2},
		},
		"may answer": {
			user,
			Filter{Limit: 10},
			[][]string{{asking}, {other, quiet}, {second, first}, {ended}},
			store.Counts{Running: 3, Waiting: 2},
		},
		"may see": {
			narrow, Filter{Limit: 10}, [][]string{{other}, nil, {second}, nil}, store.Counts{Running: 1, Waiting: 1},
		},
	} {
		o, err := f.desk.Overview(test.ctx, test.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for _, list := range [][]tasks.Status{o.Asking, o.Running, o.Waiting, o.Ended} {
			var ids []string
			for _, s := range list {
				ids = append(ids, s.Task.ID)
			}
			got = append(got, ids)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || o.Counts != test.counts ||
			o.Partial != (name == "bounded and filtered") {
			t.Errorf("%s: counts %+v, partial %t, want %+v\n%s", name, o.Counts, o.Partial, test.counts, diff)
		}
	}
}

func TestDepths(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	check := func(want ...queue.Depth) {
		t.Helper()
		got, err := f.desk.Depths(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if got[i].Oldest < 0 || got[i].Oldest > 60 {
				t.Errorf("the first has waited %.1f s", got[i].Oldest)
			}
			got[i].Oldest = 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	check(queue.Depth{Class: tasks.Interactive}, queue.Depth{Class: tasks.Review}, queue.Depth{Class: tasks.Background}, queue.Depth{Class: tasks.Maintenance})
	for i, class := range []string{tasks.Interactive, tasks.Interactive, tasks.Review} {
		task := f.task(fmt.Sprint("t", i), "x")
		task.Class = class
		f.submit(task)
	}
	check(queue.Depth{Class: tasks.Interactive, Waiting: 2}, queue.Depth{Class: tasks.Review, Waiting: 1}, queue.Depth{Class: tasks.Background},
		queue.Depth{Class: tasks.Maintenance})
	for _, queue := range []string{"gpu.review", "arm.background", "gpu.interactive"} {
		if err := f.queue.Enqueue(t.Context(), f.task("t", "x").ID, queue, 0); err != nil {
			t.Fatal(err)
		}
	}
	check(queue.Depth{Class: tasks.Interactive, Waiting: 2}, queue.Depth{Class: tasks.Review, Waiting: 1}, queue.Depth{Class: tasks.Background},
		queue.Depth{Class: tasks.Maintenance},
		queue.Depth{Pool: "arm", Class: tasks.Background, Waiting: 1}, queue.Depth{Pool: "gpu", Class: tasks.Interactive, Waiting: 1},
		queue.Depth{Pool: "gpu", Class: tasks.Review, Waiting: 1})
}
