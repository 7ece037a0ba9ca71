package slack

import (
	"github.com/errand-fleet/errand/tasks"
)

// parts are a task's final message.
func parts(t tasks.Task, o origin, e tasks.Ending, link string) []part {
	lead := "<@" + o.User + ">"
	if s := line(e.Sentence(), maxSentence); s != "" {
		lead += " " + escape(quiet(s))
	}
	foot := lines(escape(quiet(line(e.Note(), maxSentence))), dots(escape(quiet(line(e.Footer(), 200))), "run "+t.ID, link))
	return inParts(finalMarker(t, e), lead, e.Body(), foot)
}
