package intake

import (
	"fmt"

	"github.com/errand-fleet/errand/tasks"
)

// maxAnswer is how much of an answer is quoted, in characters.
const maxAnswer = 300

// NotWaiting is said to a person whose answer comes too late.
const NotWaiting = "No question is waiting for an answer."

// AnsweredBefore tells a person whose answer comes too late which answer came first.
func AnsweredBefore(a tasks.Answer) string {
	if a.Expired {
		return NotWaiting
	}
	return fmt.Sprintf("%s has already answered: %s", shorten(a.By, 100), shorten(a.Text, maxAnswer))
}

// Outcome is the line below a question that shows its answer; empty while it is open. person and quote put a person and their words into the
// source's notation.
func Outcome(q tasks.Question, person, quote func(string) string) string {
	switch a := q.Answer; {
	case a == nil:
		return ""
	case a.Expired && q.Consent != "":
		return "⏱ Not approved in time."
	case a.Expired:
		return "⏱ Not answered in time."
	default:
		return "✅ " + person(shorten(a.By, 100)) + ": " + quote(shorten(a.Text, maxAnswer))
	}
}
