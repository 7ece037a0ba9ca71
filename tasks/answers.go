package tasks

import (
	"strings"
	"sync"

	"github.com/errand-fleet/errand/agent"
)

// answers are those of the turns that a task's runs have finished. A run that goes on where another was interrupted does not give them
// again, so they go along with its checkpoint. Safe for concurrent use.
type answers struct {
	before string // of the task's earlier runs

	mu    sync.Mutex
	given string
}

// maxAnswers bounds them, in bytes; the log has all.
const maxAnswers = 512 << 10

// newAnswers begins with what earlier runs have answered.
func newAnswers(before *past) *answers {
	if !before.goesOn() {
		return &answers{}
	}
	return &answers{before: before.Answers, given: before.Answers}
}

// after puts what earlier runs have answered before the answer of this one.
func (a *answers) after(text string) string {
	if a.before == "" {
		return text
	}
	return joined(a.before, text)
}

// note takes the answer of a turn from a run's event.
func (a *answers) note(e agent.Event) {
	if e.Kind != agent.TurnEnd || e.Error {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given, _ = head(joined(a.given, e.Text), maxAnswers)
}

func (a *answers) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.given
}

// joined are texts as paragraphs, without those that say nothing.
func joined(texts ...string) string {
	var list []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			list = append(list, t)
		}
	}
	return strings.Join(list, "\n\n")
}
