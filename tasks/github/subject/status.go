package subject

import "github.com/errand-fleet/errand/tasks"

// IssueStatus is what errand remembers of the comment.
type IssueStatus struct {
	ID   int64  `json:"id,omitempty"`   // 0 if unknown
	Task string `json:"task,omitempty"` // the task whose state it may show; "" after that task has ended
	Turn int64  `json:"turn,omitempty"` // see begin; of the newest writer for that task
	Gone bool   `json:"gone,omitempty"` // people have deleted the comment, so the task shows no more states
	Pull string `json:"pull,omitempty"` // URL of the latest pull request for the issue
}

// Begin lets a task show a state, and reports whether it may. A task that waits has a state only if it has begun.
// Writers may be late, and work for different workers: that of a run is dropped when the task waits again, and that of
// a wait when it runs.
func (s *IssueStatus) Begin(t tasks.Task, waits bool) bool {
	turn, ours := 2*t.Fence, s.Task == t.ID
	if waits {
		if turn++; !ours {
			return false
		}
	}
	if ours && (s.Gone || turn < s.Turn) {
		return false
	}
	s.Task, s.Turn, s.Gone = t.ID, turn, false
	return true
}
