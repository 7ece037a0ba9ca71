package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
)

const chatHelp = `
Prints the ID of the new task. With -follow the agent's text goes to stdout,
everything else to stderr. A PROMPT of - is read from standard input.

On a terminal Ctrl-C asks, a second one cancels the task and waits for the
partial answer, a third leaves at once. Without a terminal Ctrl-C and SIGTERM
leave, and the task continues.
`

// maxPrompt bounds a prompt from standard input. The server's limit for a request is the same.
const maxPrompt = 1 << 20

// message is the body of POST /api/chat; see tasks/chat.
type message struct {
	Message     string `json:"message"`
	Repo        string `json:"repo,omitempty"`
	ProjectPath string `json:"projectPath,omitempty"`
	Agent       string `json:"agent,omitempty"`
	Thread      string `json:"thread,omitempty"`
	Model       string `json:"model,omitempty"`
	Effort      string `json:"effort,omitempty"`
	Branch      string `json:"branch,omitempty"`
	Budget      string `json:"budget,omitempty"`
	Timeout     string `json:"timeout,omitempty"`
	Plan        bool   `json:"plan,omitempty"`

	Pictures []picture `json:"pictures,omitempty"`
}

// picture is an image in a message.
type picture struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// addPicture reads a picture file.
func (m *message) addPicture(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read picture: %w", err)
	}
	m.Pictures = append(m.Pictures, picture{filepath.Base(path), data})
	return nil
}

func chatCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	var m message
	flags.StringVar(&m.Repo, "repo", "", "work in this repository, `owner/name`")
	flags.StringVar(&m.ProjectPath, "dir", "", "work in this `directory` of the server (ERRAND_DIRS)")
	flags.StringVar(&m.Thread, "thread", "", "continue this `conversation`; -follow prints its name")
	flags.StringVar(&m.Agent, "agent", "", "use this `agent` of the project")
	flags.StringVar(&m.Model, "model", "", "use this `model`")
	flags.StringVar(&m.Effort, "effort", "", "use this `effort`: low, medium, high, …")
	flags.StringVar(&m.Branch, "branch", "", "start from this `branch` of the repository")
	flags.StringVar(&m.Budget, "budget", "", "spend at most this many `dollars`, like 2.50")
	flags.StringVar(&m.Timeout, "timeout", "", "stop after this `time`, like 30m")
	flags.BoolVar(&m.Plan, "plan", false, "change nothing and answer with a plan")
	flags.Func("picture", "show this PNG, JPEG or GIF `file` to the agent; may be repeated", m.addPicture)
	follow := flags.Bool("follow", false, "follow the task until it ends")
	raw := flags.Bool("json", false, "print JSON: the task, or with -follow one event per line and the end")
	return func(ctx context.Context, args []string) error {
		err := m.complete(args, t.stdin)
		if err != nil {
			return err
		}
		first, text, err := t.api.submit(ctx, m)
		headline := ""
		switch {
		case err != nil:
			return err
		case *raw:
			err = t.printJSON([]byte(text + "\n"))
		case !*follow:
			printf(t.stdout, "%s\n", legible.Line(first.ID))
		default:
			headline = fmt.Sprintf("task %s, thread %s", first.ID, first.Thread)
			if first.Position > 0 {
				headline += fmt.Sprintf("; %d before it in its thread", first.Position)
			}
		}
		if err != nil || !*follow {
			return err
		}
		return t.newWatch(first.ID, t.stderr, *raw).run(ctx, headline)
	}
}

// complete takes the prompt from the arguments or from standard input and makes the directory absolute.
func (m *message) complete(args []string, stdin io.Reader) error {
	m.Message = strings.Join(args, " ")
	if m.Message == "-" {
		b, err := io.ReadAll(io.LimitReader(stdin, maxPrompt+1))
		if err != nil {
			return fmt.Errorf("read prompt: %w", err)
		}
		m.Message = string(b)
	}
	if strings.TrimSpace(m.Message) == "" {
		return exitUsage
	}
	if m.ProjectPath != "" {
		path, err := filepath.Abs(m.ProjectPath)
		if err != nil {
			return fmt.Errorf("find directory %s: %w", m.ProjectPath, err)
		}
		m.ProjectPath = path
	}
	return nil
}

// submitted is the first event of the chat's stream: the new task.
type submitted struct {
	Type, ID, Thread string
	Position         int
}

// submit posts a message and reads only the first event of the stream. Callers follow the task by its own events, which
// can be resumed.
func (c *apiClient) submit(ctx context.Context, m message) (first submitted, text string, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return first, "", fmt.Errorf("marshal message: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := c.open(ctx, http.MethodPost, "/api/chat", body)
	if err != nil {
		return first, "", err
	}
	defer resp.Body.Close()
	for e := range serverEvents(resp.Body) {
		if err := json.Unmarshal([]byte(e.data), &first); err == nil && first.Type == "task" {
			return first, e.data, nil
		}
		break
	}
	return first, "", errors.New("the server sent no task; `enqueue list` shows whether there is a new one")
}
