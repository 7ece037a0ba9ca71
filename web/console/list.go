package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/internal/view"
)

// choice is a link that changes the query of a page.
type choice struct {
	Label, URL string
	Here       bool // it is the current one
}

// section is a part of the list.
type section struct {
	Name, Title string
	Rows        []row
	Count       string // of all tasks of the section; empty if it is not counted
	Note        string // about the count
	Empty       string // instead of rows
	All         string // the URL of the list of all; empty if the rows are all
}

// fleetView is the fleet in one line.
type fleetView struct {
	Trouble        string // why tasks would not run now, or would fail, in sentences
	Running, Slots int    // tasks that run, and slots of live workers
	Workers        int
	Spent          string // today
}

// listView is the page of tasks.
type listView struct {
	Sections []section // with more than one, each has its title
	Filter   desk.Filter
	States   []choice
	Views    []choice // built-in
	Visitor  string   // whose saved views these are
	Endings  []tasks.EndingKind
	Classes  []string
	Periods  []choice
	Sources  []string // suggestions for the filters, from the tasks on the page
	People   []string
	Repos    []string

	Filtered   bool      // by more than the state
	Chosen     []string  // the filter in words, with the state
	Newest     string    // the URL of the first page; empty on it
	Older      string    // the URL of the next page
	SearchedTo time.Time // what the search reached, if it stopped early
	Fleet      fleetView

	None                bool // there are no tasks at all
	Slack, GitHub, Chat bool // the ways to start one
}

// Details reports whether a filter of the folded part of the form is set.
func (v listView) Details() bool {
	f := v.Filter
	return f.Source+f.Repo+f.Person+f.Channel+f.Class+f.Pool+string(f.Ending) != "" || f.Days != 0
}

// Limit returns the length of a page if it is not the default, else 0.
func (v listView) Limit() int {
	if v.Filter.Limit == view.DefaultList {
		return 0
	}
	return v.Filter.Limit
}

// sectionRows bounds the tasks of a section.
const sectionRows = 20

// bySections reports whether the list of a filter is shown in sections: those that need an examination of whole records
// are not.
func bySections(f desk.Filter) bool {
	return f.State+f.Text+f.Before+string(f.Ending) == "" && f.Days == 0
}

func (c *Console) listPage(w http.ResponseWriter, r *http.Request) error {
	ctx, now := r.Context(), c.View.Now()
	filter, err := view.ParseFilter(r.URL.Query())
	if err != nil {
		return err
	}
	fleet, err := c.View.Snapshot(ctx)
	if err != nil {
		return err
	}
	v := newListView(filter, fleet, now)
	v.Visitor, v.Views = people.Actor(ctx), builtIn(ctx, filter)
	for _, in := range c.View.Inbound {
		v.Slack, v.GitHub = v.Slack || in.Source == "slack", v.GitHub || in.Source == "github"
	}
	v.Chat = c.Chat.Source != nil && people.VisitorOf(ctx).Role >= policy.User
	if bySections(filter) {
		err = c.listSections(ctx, &v)
	} else {
		var l view.Listing
		if l, _, err = c.View.List(ctx, r.URL.Query()); err == nil {
			v.addPage(l, c.rows(ctx, v.Filter, l.Tasks))
		}
	}
	if err != nil {
		return err
	}
	v.suggest()
	return c.Out.LivePage(w, r, "list", v)
}

// listSections adds the tasks by what people do about them.
func (c *Console) listSections(ctx context.Context, v *listView) error {
	f := v.Filter
	f.Limit = min(f.Limit, sectionRows)
	found, err := c.View.Desk.Overview(ctx, f)
	if err != nil {
		return err
	}
	v.addSections(found, func(list []tasks.Status) []row { return c.rows(ctx, v.Filter, c.View.NewTasks(list)) })
	return nil
}

// rows returns the rows of tasks. Names link to the list with a filter.
func (c *Console) rows(ctx context.Context, f desk.Filter, list []view.Task) (rows []row) {
	now := c.View.Now()
	for _, t := range list {
		r := newRow(t, now)
		if r.Asking && !slices.ContainsFunc(t.Questions, func(q tasks.Question) bool {
			return c.View.Desk.Permits(ctx, t.Task, q.Answering())
		}) {
			r.Label = "Asks"
		}
		r.addOutcome(t)
		r.ByRepo = listURL(f, func(f *desk.Filter) { f.Repo = r.Repo })
		r.ByActor = listURL(f, func(f *desk.Filter) { f.Person = cmp.Or(t.Person, r.Source+"/"+t.Task.Actor) })
		rows = append(rows, r)
	}
	return rows
}

// addOutcome adds what came of an ended task: its pull request, or the findings of a review and their commit.
func (r *row) addOutcome(t view.Task) {
	pulls, _ := pullLinks(t.Status, "")
	if review := t.Reviewed; review != nil {
		found := "findings"
		if review.Reported == 1 {
			found = "finding"
		}
		r.Note = fmt.Sprintf("%d %s in %s", review.Reported, found, display.Line(review.Head))
		pulls, _ = pullLinks(tasks.Status{}, review.URL)
	}
	if len(pulls) == 1 {
		r.NoteURL = pulls[0].URL
	}
}

func newListView(f desk.Filter, fleet view.Snapshot, now time.Time) listView {
	v := listView{Filter: f, Endings: tasks.EndingKinds(), Classes: tasks.Classes}
	v.Fleet = fleetView{
		Trouble: fleet.Trouble(now), Running: fleet.Counts.Running, Workers: len(fleet.Workers),
		Spent: view.USD(fleet.Spent),
	}
	for _, w := range fleet.Workers {
		v.Fleet.Slots += w.Slots
	}
	for _, state := range []string{"", string(store.Waiting), string(store.Running), string(store.Ended)} {
		v.States = append(v.States, choice{cmp.Or(state, "all"), listURL(f, func(f *desk.Filter) {
			f.State = state
			if state != "ended" {
				f.Ending = "" // only ended tasks have one
			}
		}), state == f.State})
	}
	for _, days := range []int{1, 7, 30} {
		v.Periods = append(v.Periods, choice{period(days), strconv.Itoa(days), days == f.Days})
	}
	if !slices.ContainsFunc(v.Periods, func(c choice) bool { return c.Here }) && f.Days != 0 {
		v.Periods = append(v.Periods, choice{period(f.Days), strconv.Itoa(f.Days), true})
	}
	v.Filtered = f.Text != "" || v.Details()
	v.Chosen = inWords(f)
	if f.Before != "" {
		v.Newest = listURL(f)
	}
	return v
}

// period names the days of a filter.
func period(days int) string {
	if days == 1 {
		return "today"
	}
	return fmt.Sprintf("%d days", days)
}

// inWords names each value of a filter.
func inWords(f desk.Filter) (words []string) {
	for _, one := range [][2]string{
		{"", f.State},
		{"source ", f.Source},
		{"repository ", f.Repo},
		{"person ", f.Person},
		{"channel ", f.Channel},
		{"class ", f.Class},
		{"pool ", f.Pool},
		{"ending ", string(f.Ending)},
	} {
		if one[1] != "" {
			words = append(words, one[0]+one[1])
		}
	}
	if f.Days != 0 {
		words = append(words, period(f.Days))
	}
	if f.Text != "" {
		words = append(words, "text “"+f.Text+"”")
	}
	return words
}

// builtIn returns the views that everyone has.
func builtIn(ctx context.Context, now desk.Filter) []choice {
	visitor := people.VisitorOf(ctx)
	var list []choice
	for _, one := range []struct {
		label  string
		filter desk.Filter
	}{
		{"Mine", desk.Filter{Person: cmp.Or(visitor.Person, "chat/"+people.Actor(ctx))}},
		{"Failed today", desk.Filter{State: string(store.Ended), Ending: tasks.Failed, Days: 1}},
		{"Reviews", desk.Filter{Class: tasks.Review}},
	} {
		one.filter.Limit = view.DefaultList
		now.Limit, now.Before = view.DefaultList, ""
		list = append(list, choice{one.label, listURL(one.filter), one.filter == now})
	}
	return list
}

// addPage adds a page of tasks in one section without a title.
func (v *listView) addPage(l view.Listing, rows []row) {
	v.Sections = []section{{Name: "found", Rows: rows}}
	if l.Next == "" {
		return
	}
	older := view.FilterValues(v.Filter)
	older.Set("before", l.Next)
	v.Older = "/?" + older.Encode()
	if len(l.Tasks) < v.Filter.Limit {
		v.SearchedTo = tasks.Born(l.Next)
	}
}

// addSections adds a section for each thing that people do about tasks. It leaves out empty ones, but without a filter
// it says that nothing runs.
func (v *listView) addSections(o desk.Overview, rows func([]tasks.Status) []row) {
	all := func(state store.State) string {
		return listURL(v.Filter, func(f *desk.Filter) { f.State = string(state) })
	}
	asking, running, waiting, ended := rows(o.Asking), rows(o.Running), rows(o.Waiting), rows(o.Ended)
	if len(asking)+len(running)+len(waiting)+len(ended) == 0 && o.Counts == (store.Counts{}) && !o.Partial {
		v.None = !v.Filtered
		return
	}
	if len(asking) > 0 {
		v.Sections = append(v.Sections, section{
			Name: "asking", Title: "Needs you", Rows: asking, Count: strconv.Itoa(len(asking)),
		})
	}
	s := section{
		Name: "running", Title: "Running", Rows: running, Count: strconv.Itoa(o.Counts.Running),
		Empty: "Nothing is running.",
	}
	if o.Counts.Running+o.Counts.Waiting == 0 && !o.Partial {
		s.Empty = "Nothing is running or waiting."
	}
	if n := len(asking); n > 0 {
		s.Note, s.Empty = fmt.Sprintf("%d of them above", n), ""
	}
	if o.Counts.Running > len(asking)+len(running) {
		s.All = all(store.Running)
	}
	if !v.Filtered || o.Counts.Running > 0 {
		v.Sections = append(v.Sections, s)
	}
	if o.Counts.Waiting > 0 || o.Partial {
		s := section{Name: "waiting", Title: "Waiting", Rows: waiting, Count: strconv.Itoa(o.Counts.Waiting)}
		if o.Partial {
			s.Count += "+"
		}
		if o.Counts.Waiting == 0 {
			s.Count, s.Empty = "", "None of the newest tasks waits."
		}
		if o.Partial || o.Counts.Waiting > len(waiting) {
			s.All = all(store.Waiting)
		}
		v.Sections = append(v.Sections, s)
	}
	if len(ended) > 0 {
		v.Sections = append(v.Sections, section{Name: "ended", Title: "Recent", Rows: ended, All: all(store.Ended)})
	}
}

// suggest fills the suggestions for the filters.
func (v *listView) suggest() {
	for _, s := range v.Sections {
		for _, r := range s.Rows {
			v.Sources = append(v.Sources, r.Source)
			v.People = append(v.People, r.Actor)
			v.Repos = append(v.Repos, r.Repo)
		}
	}
	v.Sources, v.People, v.Repos = distinct(v.Sources), distinct(v.People), distinct(v.Repos)
}

// Empty reports whether a filter selects nothing.
func (v listView) Empty() bool {
	return !v.None && !slices.ContainsFunc(v.Sections, func(s section) bool { return len(s.Rows) > 0 || s.Title != "" })
}

// listURL returns the first page of the list with a changed filter.
func listURL(f desk.Filter, change ...func(*desk.Filter)) string {
	for _, apply := range change {
		apply(&f)
	}
	to := url.URL{Path: "/", RawQuery: view.FilterValues(f).Encode()}
	return to.String()
}

// distinct sorts values, and drops empty ones and duplicates.
func distinct(values []string) []string {
	slices.Sort(values)
	return slices.DeleteFunc(slices.Compact(values), func(v string) bool { return v == "" })
}
