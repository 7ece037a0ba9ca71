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
Prints the ID of the new task, or with -follow what the agent does and says.
A PROMPT of - is read from standard input.

With -follow the text goes to stdout and everything about it to stderr. On a
terminal Ctrl-C asks, a second one cancels the task and waits for what there
is of an answer, a third leaves at once. Elsewhere Ctrl-C and SIGTERM leave,
and the task goes on.
`

// maxPrompt bounds what is read from standard input; the server's limit for a request is the same.
const maxPrompt = 1 << 20

// message is what is posted to /api/chat; see tasks/chat.
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

// read adds the picture in a file.
func (m *message) read(path string) error {
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
	flags.StringVar(&m.Thread, "thread", "", "go on with this `conversation`: -follow tells its name")
	flags.StringVar(&m.Agent, "agent", "", "address this `agent` of the project")
	flags.StringVar(&m.Model, "model", "", "use this `model`")
	flags.StringVar(&m.Effort, "effort", "", "think this `much`: low, medium, high, …")
	flags.StringVar(&m.Branch, "branch", "", "start from this `branch` of the repository")
	flags.StringVar(&m.Budget, "budget", "", "spend at most this many `dollars`, like 2.50")
	flags.StringVar(&m.Timeout, "timeout", "", "stop after this `time`, like 30m")
	flags.BoolVar(&m.Plan, "plan", false, "change nothing, and answer with what would be done")
	flags.Func("picture", "show this PNG, JPEG or GIF `file` to the agent; may be repeated", m.read)
	follow := flags.Bool("follow", false, "stay, and print what happens until the task has ended")
	raw := flags.Bool("json", false, "print JSON: the task; with -follow an event per line and its end")
	return func(ctx context.Context, args []string) error {
		err := m.complete(args, t.stdin)
		if err != nil {
			return err
		}
		first, text, err := t.door.ask(ctx, m)
		words := ""
		switch {
		case err != nil:
			return err
		case *raw:
			err = t.json([]byte(text + "\n"))
		case !*follow:
			say(t.stdout, "%s\n", legible.Line(first.ID))
		default:
			words = fmt.Sprintf("task %s, thread %s", first.ID, first.Thread)
			if first.Position > 0 {
				words += fmt.Sprintf("; before it in its thread: %d", first.Position)
			}
		}
		if err != nil || !*follow {
			return err
		}
		return t.newWatch(first.ID, t.stderr, *raw).run(ctx, words)
	}
}

// complete fills in what stands in the arguments.
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
		return misused
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

// asked is the first event of the chat's stream: the task that a message has become.
type asked struct {
	Type, ID, Thread string
	Position         int
}

// ask posts a message. What becomes of the task can be read elsewhere, where a reader who is cut off can go on.
func (d *door) ask(ctx context.Context, m message) (first asked, text string, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return first, "", fmt.Errorf("marshal message: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := d.open(ctx, http.MethodPost, "/api/chat", body, "Content-Type", "application/json")
	if err != nil {
		return first, "", err
	}
	defer resp.Body.Close()
	for e := range stream(resp.Body) {
		if err := json.Unmarshal([]byte(e.data), &first); err == nil && first.Type == "task" {
			return first, e.data, nil
		}
		break
	}
	return first, "", errors.New("the server did not name the task; `enqueue list` shows whether it was taken")
}
