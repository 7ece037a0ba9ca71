package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/errand-fleet/errand/internal/display"
)

// maxPrompt bounds a prompt from standard input. The server's limit for a request is the same.
const maxPrompt = 1 << 20

// picture is an image in a message.
type picture struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

func chatCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{
		Use: "chat PROMPT…", Short: "Submit a task",
		Annotations: map[string]string{"json": "JSON: the task, or with --follow one event per line and the end"},
	}
	flags := c.Flags()
	given := parameterFlags(
		flags,
		parameter{
			flag: "repo", name: "repo",
			about: "work in this repository, `owner/name`; further ones follow after commas",
		},
		parameter{flag: "dir", name: "projectPath", about: "work in this `directory` of the server (ERRAND_DIRS)"},
		parameter{flag: "thread", name: "thread", about: "continue this `conversation`; --follow prints its name"},
		parameter{flag: "agent", name: "agent", about: "use this `agent` of the project"},
		parameter{flag: "model", name: "model", about: "use this `model`"},
		parameter{flag: "effort", name: "effort", about: "use this `effort`: low, medium, high, …"},
		parameter{flag: "branch", name: "branch", about: "start from this `branch` of the repository"},
		parameter{flag: "directory", name: "directory", about: "start in this `directory` of the repository"},
		parameter{flag: "budget", name: "budget", about: "spend at most this many `dollars`, like 2.50"},
		parameter{flag: "timeout", name: "timeout", about: "stop after this `time`, like 30m"},
		parameter{
			flag: "profile", name: "profile",
			about: "let the agent write or only read: the `profile` write (default) or read",
		},
	)
	plan := flags.Bool("plan", false, "change nothing and answer with a plan")
	pictures := pictureFlag(flags)
	follow := flags.BoolP("follow", "f", false, "follow the task until it ends")
	c.RunE = func(c *cobra.Command, args []string) error {
		message, err := newMessage(given, args, t.stdin)
		if err != nil {
			return err
		}
		message["plan"], message["pictures"] = *plan, *pictures
		first, text, err := t.api.submit(c.Context(), message)
		if err != nil {
			return err
		}
		id := display.TaskID(first.ID)
		if t.raw {
			err = t.printJSON([]byte(text + "\n"))
		} else if !*follow {
			printf(t.stdout, "%s\n", id)
		}
		if err != nil || !*follow {
			return err
		}
		headline := ""
		if !t.raw {
			headline = fmt.Sprintf("task %s, thread %s", id, first.Thread)
			if first.Position > 0 {
				headline += fmt.Sprintf("; %d before it in its thread", first.Position)
			}
		}
		return t.newWatch(url.PathEscape(first.ID), id, t.stderr).run(c.Context(), headline)
	}
	return c
}

// pictureFlag declares the flag for pictures and returns them, which parsing the flags fills.
func pictureFlag(flags *pflag.FlagSet) *[]picture {
	var pictures []picture
	flags.Func("picture", "show this PNG, JPEG or GIF `file` to the agent; may be repeated", func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read picture: %w", err)
		}
		pictures = append(pictures, picture{filepath.Base(path), data})
		return nil
	})
	return &pictures
}

// newMessage returns the body of POST /api/chat (see tasks/chat) with the prompt from the arguments or from standard
// input, and makes the directory absolute.
func newMessage(given url.Values, args []string, stdin io.Reader) (map[string]any, error) {
	prompt := strings.Join(args, " ")
	if prompt == "-" {
		b, err := io.ReadAll(io.LimitReader(stdin, maxPrompt+1))
		if err != nil {
			return nil, fmt.Errorf("read prompt: %w", err)
		}
		prompt = string(b)
	}
	if strings.TrimSpace(prompt) == "" {
		return nil, usageError{errors.New("the prompt is empty")}
	}
	message := map[string]any{"message": prompt}
	for name := range given {
		message[name] = given.Get(name)
	}
	if repos := strings.Split(strings.ReplaceAll(given.Get("repo"), " ", ""), ","); len(repos) > 1 {
		message["repo"], message["repos"] = repos[0], repos[1:]
	}
	if dir := given.Get("projectPath"); dir != "" {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("find directory %s: %w", dir, err)
		}
		message["projectPath"] = path
	}
	return message, nil
}

// submitted is the first event of the chat's stream: the new task.
type submitted struct {
	Type, ID, Thread string
	Position         int
}

// submit posts a message and reads only the first event of the stream. Callers follow the task by its own events, which
// can be resumed.
func (c *apiClient) submit(ctx context.Context, message any) (first submitted, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := c.open(ctx, "POST /api/chat", message)
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
