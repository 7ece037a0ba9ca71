package slack

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/errand-fleet/errand/tasks"
)

// origin is the return address of a task: the message that asked for it.
type origin struct {
	Team     string `json:"team"`
	Channel  string `json:"channel"`
	TS       string `json:"ts"`
	ThreadTS string `json:"thread_ts,omitempty"` // empty: the message began no thread yet, and the answer will
	User     string `json:"user"`
}

func originOf(t tasks.Task) (origin, error) {
	var o origin
	if err := json.Unmarshal(t.Origin, &o); err != nil {
		return o, fmt.Errorf("read origin of task %s: %w", t.ID, err)
	}
	return o, nil
}

func (o origin) json() json.RawMessage {
	b, _ := json.Marshal(o) // strings only: it cannot fail
	return b
}

// at is the message of the same thread that became the task with that ID: the ID begins with its time.
func (o origin) at(id string) origin {
	return origin{Team: o.Team, Channel: o.Channel, ThreadTS: o.root(), TS: id[:10] + "." + id[10:16]}
}

// root is the message whose thread the task is in.
func (o origin) root() string { return cmp.Or(o.ThreadTS, o.TS) }
