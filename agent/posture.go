package agent

// Posture is what separates a run from other runs and from the worker.
type Posture string

// The postures, from the strongest on. docs/security.md compares them.
const (
	Sandboxed Posture = "sandboxed"
	OneTask   Posture = "one task per container"
	Shared    Posture = "shared"
)

// Protects says what a posture protects, in one sentence for operators. It is empty for an unknown one.
func (p Posture) Protects() string {
	switch p {
	case Sandboxed:
		return "A run sees the files and processes of its own task, and nothing else of the worker."
	case OneTask:
		return "The container has one task and is emptied before the next, so a run finds nothing of other " +
			"tasks. It reaches whatever the container's network reaches."
	case Shared:
		return "Nothing separates runs: the agent's commands can read and change everything that the worker's " +
			"user can, including the clones and logs of other tasks, and signal its processes."
	}
	return ""
}
