package console

import (
	"cmp"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/web/internal/view"
)

// row is a task in the list, formatted.
type row struct {
	ID, Title, Source, Actor string
	State, Ending            string
	Repo                     string
	Created                  time.Time
	Age, Took, Cost          string
	Note                     string // why it waits, or how it ended or what came of it
	Late                     string // that its answer is not posted
	NoteURL                  string // of the pull request that Note is about; empty: none
	NoteWhen                 string // what happens at NoteUntil, such as "resumes about "
	NoteUntil                time.Time
	Label                    string // the state in words
	Stopping                 bool   // it was cancelled and has not ended yet
	Asking                   bool   // it waits for an answer

	ByActor, ByRepo string // URLs of the list filtered by these
}

func newRow(v view.Task, now time.Time) row {
	r := row{
		ID: v.Task.ID, Title: v.Title, Source: v.Task.Source, Actor: display.Line(v.Name()),
		State: v.State, Repo: v.Task.Repo, Created: v.Created, Age: display.Age(now.Sub(v.Created)),
		Note: display.Text(v.Why), Late: display.Text(v.Unposted), Label: v.Headline(now).State,
		Stopping: v.Stopping(), Asking: len(v.Questions) > 0,
	}
	if r.Asking {
		r.Label, r.Note = "Needs you", display.Text(v.Questions[0].Text)
	}
	switch {
	case v.Ending != nil:
		if len(v.Ending.PullRequests()) > 0 {
			v.Sentence = "" // what came of it says more, and leads there
		}
		r.Ending = string(v.Ending.Kind)
		r.Note = display.Text(cmp.Or(v.Sentence, v.Ending.Headline().Detail))
		r.Cost = view.USD(v.Spent())
		if d := v.Ended.Sub(v.Started); !v.Started.IsZero() && d >= time.Second {
			r.Took = display.Age(d)
		}
	case v.State == "running" && !v.Started.IsZero():
		r.Took = display.Age(now.Sub(v.Started))
	case v.State == "waiting":
		line := v.Headline(now)
		r.Note, r.NoteWhen, r.NoteUntil = display.Text(line.Detail), whenOf(line), line.Until
	}
	return r
}

// From returns the name of the source.
func (r row) From() string {
	if name := map[string]string{
		"slack": "Slack", "github": "GitHub", "chat": "Chat", "schedule": "Schedule", "hook": "Hook",
	}[r.Source]; name != "" {
		return name
	}
	return r.Source
}

// StateClass returns the CSS class of the task's state: its ending, its state, "asking" or "stopping".
func (r row) StateClass() string {
	switch {
	case r.Stopping:
		return "stopping"
	case r.Asking:
		return "asking"
	}
	return cmp.Or(r.Ending, r.State)
}
