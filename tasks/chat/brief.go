package chat

import (
	"context"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// system is what the agent is told about its reader.
const system = "You are talking with one person through errand, in a console or a terminal. They read along while you work, but may be " +
	"away: where a wrong guess would waste the work, ask with the tool ask_user; else decide, and say what you assumed. Answer in Markdown."

// Brief passes on the words as they are. They come from the person who is in charge here, so a /command or an @agent that they begin with
// counts as in the CLI itself.
func (s *Source) Brief(_ context.Context, t tasks.Task, _ string) (tasks.Brief, error) {
	if t.Dir != "" {
		// Looked at again: since the front door did, the directory may have been replaced by a link that leads elsewhere, and
		// this may be another machine with other roots.
		dir, err := s.Directory(t.Dir)
		if err == nil && dir != t.Dir {
			err = fmt.Errorf("%s is another directory by now", t.Dir)
		}
		if err != nil {
			return tasks.Brief{}, &tasks.InputError{Sentence: fmt.Sprintf("The directory cannot be worked in: %v.", err)}
		}
	}
	prompt := agent.Message{Text: t.Prompt, Agent: t.Options.Agent}
	return tasks.Brief{Prompt: prompt, System: system, Keep: true}, nil
}
