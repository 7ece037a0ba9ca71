package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
)

// said is an event of the chat's stream; see tasks/chat.
type said struct {
	Type, ID, Thread, Content, Result, Partial string
	Cost                                       float64
	Position                                   int
	Question                                   string
	Options                                    []string
}

func chatCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	var body struct {
		Message     string `json:"message"`
		Repo        string `json:"repo,omitempty"`
		ProjectPath string `json:"projectPath,omitempty"`
		Agent       string `json:"agent,omitempty"`
		Thread      string `json:"thread,omitempty"`
		Model       string `json:"model,omitempty"`
	}
	flags.StringVar(&body.Repo, "repo", "", "work in this repository, `owner/name`")
	flags.StringVar(&body.ProjectPath, "dir", "", "work in this directory of the server, one that ERRAND_DIRS opens there")
	flags.StringVar(&body.Thread, "thread", "", "go on with this conversation")
	flags.StringVar(&body.Agent, "agent", "", "address this agent of the project")
	flags.StringVar(&body.Model, "model", "", "use this model")
	follow := flags.Bool("follow", false, "stay, and print the answer; otherwise only the task's ID is printed")
	return func(ctx context.Context, args []string) error {
		if body.Message = strings.Join(args, " "); strings.TrimSpace(body.Message) == "" {
			return errUsage
		}
		if body.ProjectPath != "" {
			path, err := filepath.Abs(body.ProjectPath)
			if err != nil {
				return fmt.Errorf("find directory %s: %w", body.ProjectPath, err)
			}
			body.ProjectPath = path
		}
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("marshal message: %w", err)
		}
		resp, err := t.door.open(ctx, http.MethodPost, "/api/chat", b, "Content-Type", "application/json")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return t.converse(ctx, resp.Body, *follow)
	}
}

// converse reads the answer. Without follow it leaves as soon as it knows the task's ID, which cancels nothing.
func (t *terminal) converse(ctx context.Context, r io.Reader, follow bool) error {
	p, id := &printer{text: t.stdout, side: t.stderr}, ""
	for e := range stream(r) {
		var s said
		if e.data == "[DONE]" {
			break
		}
		if err := json.Unmarshal([]byte(e.data), &s); err != nil {
			return fmt.Errorf("read stream: %w", err)
		}
		switch s.Type {
		case "task":
			if id = s.ID; !follow {
				say(t.stdout, "%s\n", plain(id))
				return nil
			}
			p.line("task %s, thread %s", s.ID, s.Thread)
			if s.Position > 0 {
				p.line("  before it in its thread: %d", s.Position)
			}
		case "token":
			p.piece(s.Content)
		case "tool_use":
			p.line("· %s", s.Content)
		case "update":
			p.line("» %s", s.Content)
		case "question":
			p.line("? %s", s.Content)
			for i, o := range s.Options {
				p.line("  %d. %s", i+1, o)
			}
			p.line("  answer with: enqueue answer -question %s %s YOUR WORDS", s.Question, id)
		case "answer":
			p.line("! %s", cmp.Or(s.Content, "nobody answered; the agent decides by itself"))
		case "absorbed":
			p.line("+ %s", s.Content)
		case "done":
			if !p.said {
				p.piece(s.Result)
			}
			p.newline()
			p.line("done, $%.2f", s.Cost)
			return nil
		case "error":
			if !p.said {
				p.piece(s.Partial)
			}
			p.line("%s", s.Content)
			return errSaid
		}
	}
	p.newline()
	switch {
	case id == "":
		return errors.New("the server ended the stream before it named the task; `enqueue list` shows whether it was taken")
	case ctx.Err() != nil:
		return fmt.Errorf("the task goes on: `enqueue logs -f %s` follows it, `enqueue cancel %s` stops it", id, id)
	}
	return fmt.Errorf("the stream broke off, but the task goes on: `enqueue logs -f %s` follows it", id)
}
