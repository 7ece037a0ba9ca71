package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// errNoSession says that there is nothing to resume.
var errNoSession = errors.New("no such session")

// entry is one line of a saved conversation.
type entry struct {
	Type    string   `json:"type"` // user, history, assistant
	UUID    string   `json:"uuid,omitempty"`
	Text    string   `json:"text"`
	Tokens  []string `json:"tokens,omitempty"` // those that a user's message brought, or that an answer was about
	Session string   `json:"sessionId"`
}

// transcript is a conversation as it is saved, each entry at once, so that one who dies loses nothing that was said before.
type transcript struct {
	id      string
	file    *os.File
	entries []entry
}

// openTranscript begins a conversation, or goes on with the one that lies where errand has put it.
func openTranscript(o options) (*transcript, error) {
	projects := filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "projects")
	t := &transcript{id: o.session}
	if o.resume != "" {
		found, _ := filepath.Glob(filepath.Join(projects, "*", o.resume+".jsonl"))
		if len(found) == 0 {
			return nil, errNoSession
		}
		if err := t.read(found[0]); err != nil {
			return nil, err
		}
		if !o.fork {
			t.id = o.resume
		}
	}
	dir, _ := os.Getwd()
	place := filepath.Join(projects, slug(dir))
	if err := os.MkdirAll(place, 0o700); err != nil { //nolint:gosec // the worker says where
		return nil, fmt.Errorf("save session: %w", err)
	}
	var err error
	t.file, err = os.OpenFile(filepath.Join(place, t.id+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // likewise
	if err != nil {
		return nil, fmt.Errorf("save session: %w", err)
	}
	return t, nil
}

// slug is the name of a working directory below projects (claude-cli.md §2).
func slug(dir string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, dir)
}

func (t *transcript) read(path string) error {
	data, err := os.ReadFile(path) //nolint:gosec // likewise
	if err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	for line := range bytes.Lines(data) {
		var e entry
		if json.Unmarshal(line, &e) == nil { // the last one may be half a line
			t.entries = append(t.entries, e)
		}
	}
	return nil
}

func (t *transcript) add(e entry) {
	e.Session = t.id
	t.entries = append(t.entries, e)
	line, err := json.Marshal(e)
	if err == nil {
		_, _ = t.file.Write(append(line, '\n')) // a full disk costs the real one its memory as well
	}
}

// open are the tokens that were brought up and not answered.
func (t *transcript) open() []string {
	var open []string
	for _, e := range t.entries {
		switch e.Type {
		case "user":
			open = append(open, e.Tokens...)
		case "assistant":
			open = slices.DeleteFunc(open, func(token string) bool { return slices.Contains(e.Tokens, token) })
		}
	}
	return unique(open)
}

// last are the tokens of the latest answer.
func (t *transcript) last() []string {
	for _, e := range slices.Backward(t.entries) {
		if e.Type == "assistant" {
			return e.Tokens
		}
	}
	return nil
}

// turns is how many answers the conversation has, from which the real CLI goes on to count its costs.
func (t *transcript) turns() (n int) {
	for _, e := range t.entries {
		if e.Type == "assistant" {
			n++
		}
	}
	return n
}

// unique leaves out repetitions and keeps the order.
func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
