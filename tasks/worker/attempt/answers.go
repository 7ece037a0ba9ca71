package attempt

import (
	"sync"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// maxAnswers bounds the stored answers of a run, in bytes; the log has all of them.
const maxAnswers = 512 << 10

// answers collects the answers of a task's finished turns. A resumed run does not repeat them, so they are part of
// its checkpoint. It is safe for concurrent use.
type answers struct {
	before string // answers of the task's earlier runs

	mu    sync.Mutex
	given string
}

// newAnswers starts with the answers of earlier runs.
func newAnswers(before *resumeState) *answers {
	if !before.goesOn() {
		return &answers{}
	}
	return &answers{before: before.Answers, given: before.Answers}
}

// after returns the answers of earlier runs followed by text.
func (a *answers) after(text string) string {
	if a.before == "" {
		return text
	}
	return format.Paragraphs(a.before, text)
}

// note records the answer of a turn.
func (a *answers) note(e agent.Event) {
	if e.Kind != agent.TurnEnd || e.Error {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given, _ = format.Head(format.Paragraphs(a.given, e.Text), maxAnswers)
}

func (a *answers) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.given
}
