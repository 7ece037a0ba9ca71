package intake

import (
	"fmt"

	"github.com/errand-fleet/errand/tasks"
)

// maxAnswer is how much of an answer is quoted, in characters.
const maxAnswer = 300

// NotWaiting is the reply to an answer that comes too late.
const NotWaiting = "No question is waiting for an answer."

// AnsweredBefore returns the reply to an answer that comes too late: it quotes the first answer.
func AnsweredBefore(a tasks.Answer) string {
	if a.Expired {
		return NotWaiting
	}
	return fmt.Sprintf("%s has already answered: %s", shorten(a.By, 100), shorten(a.Text, maxAnswer))
}

// Outcome returns the line below a question that shows its answer; empty while the question is open. person and quote
// convert a name and a text to the source's notation.
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
