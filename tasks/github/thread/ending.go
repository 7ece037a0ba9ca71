package thread

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// howToRetry follows the reason of a failure.
const howToRetry = "Comment `/retry` to try again."

// addenda returns what follows an answer: a line for each published work, and how to retry what failed.
func addenda(e tasks.Ending) string {
	text := ""
	for _, one := range e.Notes() {
		text += "\n" + markdown.Neutral(untrusted.Line(one, 500))
	}
	failed := []tasks.EndingKind{tasks.Failed, tasks.TimedOut, tasks.Stalled, tasks.Lost}
	if slices.Contains(failed, e.Kind) {
		text += "\n" + howToRetry
	}
	if text != "" {
		text = "\n" + text
	}
	return text
}

// Text returns the answer, or the reason for a missing answer with the partial answer.
func Text(e tasks.Ending) string {
	e.Result.Text = strings.TrimSpace(e.Result.Text)
	return strings.TrimSpace(e.Sentence() + "\n\n" + e.Body())
}

// Foot returns the end of an answer, below a line: the facts about the run with a link to it.
func (t Thread) Foot(task string, e tasks.Ending, facts ...string) string {
	if footer := e.Footer(); footer != "" {
		facts = append(facts, markdown.Unping(footer))
	}
	return addenda(e) + "\n\n---\n<sub>" + strings.Join(append(facts, t.RunLink(task)), " · ") + "</sub>\n"
}

// RunLink returns a link to where people see a task, or its ID.
func (t Thread) RunLink(task string) string {
	if t.ConsoleURL == "" {
		return "run " + display.TaskID(task)
	}
	return fmt.Sprintf("[run %s](%s)", display.TaskID(task), t.RunPage("", task))
}

// RunPage returns the address where people see a task: in the console, or at the place of its answer. It is unique
// among the tasks of a commit.
func (t Thread) RunPage(place, task string) string {
	if t.ConsoleURL == "" {
		return place + "#" + task
	}
	return t.ConsoleURL + "/tasks/" + task
}
