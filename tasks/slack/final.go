package slack

import (
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// parts are a task's final message.
func parts(t tasks.Task, o origin, e tasks.Ending, link string) []part {
	lead := "<@" + o.User + ">"
	if s := line(e.Sentence(), maxSentence); s != "" {
		lead += " " + escape(quiet(s))
	}
	foot := lines(escape(quiet(line(e.Note(), maxSentence))), dots(escape(quiet(line(e.Footer(), 200))), "run "+t.ID, link))
	return inParts(finalMarker(t, e), lead, body(e), foot)
}

// body is the answer, or what there is of one.
func body(e tasks.Ending) string {
	if e.Kind == tasks.Answered {
		return e.Result.Text
	}
	partial := e.Partial()
	if partial == "" {
		return ""
	}
	return "What the agent had said until then:\n\n> " + strings.ReplaceAll(partial, "\n", "\n> ")
}
