package slack

import (
	"github.com/errand-fleet/errand/tasks"
)

// parts are a task's final message.
func (s *Source) parts(t tasks.Task, o origin, e tasks.Ending) []part {
	lead := "<@" + o.User + ">"
	if sentence := line(e.Sentence(), maxSentence); sentence != "" {
		lead += " " + escape(quiet(sentence))
	}
	foot := lines(escape(quiet(line(e.Note(), maxSentence))), dots(escape(quiet(line(e.Footer(), 200))), "run "+t.ID))
	return inParts(finalMarker(t, e), lead, e.Body(), foot, s.finalButtons(t, e)...)
}

// finalButtons are what can be done about an ending.
func (s *Source) finalButtons(t tasks.Task, e tasks.Ending) []button {
	list := s.logButton(t.ID)
	if p := e.Published; p != nil && p.PullRequest.URL != "" {
		list = append([]button{{text: "Pull request", action: openPull, url: p.PullRequest.URL}}, list...)
	}
	list = append(list, button{text: "Try again", action: tryAgain, value: t.ID})
	if e.Body() != "" {
		list = append(list, s.voteButtons(t.ID)...)
	}
	return list
}
