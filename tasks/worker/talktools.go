package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"golang.org/x/sys/unix"
)

// maxAttachment is the largest file an agent may post.
const maxAttachment = 20 << 20

// tools returns the agent's tools for speaking with people, as far as the source supports them.
func (k *talk) tools(p place) []agent.Tool {
	if k == nil {
		return nil
	}
	type update struct {
		Text string `json:"text" jsonschema:"one or two sentences of Markdown"`
	}
	type question struct {
		Question string   `json:"question" jsonschema:"one question, with the context that a reader needs to answer it"`
		Options  []string `json:"options,omitempty" jsonschema:"at most 5 short answers to choose from; omit for free text"`
	}
	list := []agent.Tool{
		agent.NewTool("post_update", "Post a message to the thread while you continue working, for example an intermediate result or a change of plan. "+
			"People already see your progress, so use it rarely.",
			func(ctx context.Context, in update) (string, error) {
				if strings.TrimSpace(in.Text) == "" {
					return "", errors.New("the text is empty")
				}
				return k.say(ctx, in.Text)
			}),
		agent.NewTool("ask_user", "Ask the person who gave you this task, and wait for the answer, which may take minutes. Use it only if a "+
			"wrong guess would waste the work.",
			func(ctx context.Context, in question) (string, error) { return k.askUser(ctx, in.Question, in.Options) }),
	}
	if reader, ok := k.talker.(tasks.ThreadReader); ok {
		read := agent.NewTool("read_thread", "Read the conversation of this task again, including messages since you started.",
			func(ctx context.Context, _ struct{}) (string, error) { return reader.ReadThread(ctx, k.task) })
		read.ReadOnly = true
		list = append(list, read)
	}
	if attacher, ok := k.talker.(tasks.Attacher); ok {
		type file struct {
			Path string `json:"path" jsonschema:"a file in your working directory"`
		}
		list = append(list, agent.NewTool("attach_file", "Post a file to the thread, such as a picture, a report or a long log.",
			func(ctx context.Context, in file) (string, error) { return k.attach(ctx, attacher, p, in.Path) }))
	}
	return list
}

func (k *talk) askUser(ctx context.Context, text string, options []string) (string, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", errors.New("the question is empty")
	case len(options) > 5:
		return "", errors.New("at most 5 options can be offered")
	}
	a, err := k.ask(ctx, tasks.Question{Text: text, Options: options})
	switch {
	case err != nil:
		return "", err
	case a.Expired:
		return fmt.Sprintf("No one answered within %s. Decide yourself, and state your assumptions in your answer.", k.patience), nil
	default:
		return fmt.Sprintf("%s answered: %s", a.By, a.Text), nil
	}
}

// attach posts a file that the agent can read. It follows no link that leads out of the agent's directories.
func (k *talk) attach(ctx context.Context, to tasks.Attacher, p place, path string) (string, error) {
	data, err := p.read(path)
	if err != nil {
		return "", err
	}
	name := filepath.Base(path)
	first, err := k.claim.First(ctx, "file-"+format.Hash(name, string(data)))
	if err != nil {
		return "", err
	}
	if !first { // a failed attempt may still have arrived
		return "This file was already posted. If it is missing from the thread, post it under another name.", nil
	}
	if err := to.Attach(ctx, k.task, name, k.redact.Bytes(data)); err != nil {
		return "", fmt.Errorf("attach %s: %w", name, err)
	}
	return "Attached " + name + ".", nil
}

// read reads a file from the run's directories.
func (p place) read(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	for _, dir := range []string{p.Dir, p.Files} {
		rel, err := filepath.Rel(dir, path)
		if dir == "" || err != nil || !filepath.IsLocal(rel) {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", dir, err)
		}
		defer root.Close()
		// Open the file before looking at it; opening a pipe would block without O_NONBLOCK.
		f, err := root.OpenFile(rel, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		info, err := f.Stat()
		switch {
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is not a regular file", rel)
		case info.Size() > maxAttachment:
			return nil, fmt.Errorf("%s has %d bytes; at most %d can be posted", rel, info.Size(), maxAttachment)
		}
		return io.ReadAll(io.LimitReader(f, maxAttachment))
	}
	return nil, fmt.Errorf("%s is not in your working directory", path)
}

// maxCall is the longest input of a call that people are shown.
const maxCall = 6 << 10

// Answers to a request for approval, in any case.
var (
	consent = []string{"approve", "approved", "allow", "yes", "y", "ok", "okay"}
	dissent = []string{"deny", "no", "n"}
)

// permit asks people whether the agent may make a call. They see the complete input; a longer one is denied.
func (k *talk) permit(ctx context.Context, r agent.ToolRequest) agent.Decision {
	var input bytes.Buffer
	if json.Indent(&input, r.Input, "", "  ") != nil || input.Len() > maxCall {
		return agent.Decision{Reason: "This needs a person's approval and is too long to review. Do it in smaller steps."}
	}
	what := r.Tool
	if r.Reason != "" {
		what += " (" + r.Reason + ")"
	}
	a, err := k.ask(ctx, tasks.Question{
		Text: "May I do this? " + what + "\n\n" + fenced(input.String()), Options: []string{tasks.Approve, tasks.Always, tasks.Deny}, Consent: what,
	})
	said := strings.ToLower(strings.TrimRight(a.Text, ".! "))
	switch {
	case err != nil:
		return agent.Decision{Reason: "Could not ask for approval: " + err.Error()}
	case a.Expired:
		return agent.Decision{Reason: "No one approved this in time. Continue without it, and say in your answer what is left to do."}
	case a.Text == tasks.Always, slices.Contains(consent, said):
		return agent.Decision{Allow: true}
	case slices.Contains(dissent, said):
		return agent.Decision{Reason: a.By + " denied this."}
	default:
		return agent.Decision{Reason: a.By + " denied this: " + strings.TrimPrefix(a.Text, tasks.Deny+": ")}
	}
}

// consented finds an approval for the whole task, from this run or an earlier one: for calls of the same tool that
// need approval for the same reason. It is stored with the task's questions, and a retry of the task removes it.
func (k *talk) consented(ctx context.Context, to string) (tasks.Answer, bool, error) {
	stored, err := k.store.Questions.List(ctx, k.task.ID)
	if err != nil {
		return tasks.Answer{}, false, fmt.Errorf("look for consent: %w", err)
	}
	for _, s := range stored {
		var q tasks.Question
		var a tasks.Answer
		if s.Answer == nil || json.Unmarshal(s.Body, &q) != nil || json.Unmarshal(s.Answer, &a) != nil || q.Consent != to || a.Text != tasks.Always {
			continue
		}
		k.emit(agent.Event{Kind: agent.Notice, Text: to + ": " + a.By + " approved this for the whole task.", Time: time.Now()})
		return a, true, nil
	}
	return tasks.Answer{}, false, nil
}

// fenced puts text into a code block that the text cannot close.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}
