package chat

import (
	"context"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// system tells the agent about its reader.
const system = "You are talking with one person through errand, in a console or a terminal. They read along while you work, but may be " +
	"away: if a wrong guess would waste the work, ask with the tool ask_user; otherwise decide, and state your assumption. Answer in Markdown."

// Brief passes on the words as they are. They come from a trusted person, so a /command or an @agent at their beginning counts as in the CLI.
func (s *Source) Brief(_ context.Context, t tasks.Task, _ string) (tasks.Brief, error) {
	if t.Dir != "" {
		// Check again: the directory may have been replaced by a link since the front door checked, and this may be another
		// machine with other roots.
		dir, err := s.Directory(t.Dir)
		if err == nil && dir != t.Dir {
			err = fmt.Errorf("%s is a different directory now", t.Dir)
		}
		if err != nil {
			return tasks.Brief{}, &tasks.InputError{Sentence: fmt.Sprintf("Cannot work in this directory: %v.", err)}
		}
	}
	prompt := agent.Message{Text: t.Prompt, Agent: t.Options.Agent}
	return tasks.Brief{Prompt: prompt, System: system, Keep: true}, nil
}
