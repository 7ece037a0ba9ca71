package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// errNoSession means that there is no session to resume.
var errNoSession = errors.New("no such session")

// entry is one line of a saved conversation.
type entry struct {
	Type    string   `json:"type"` // user, history, assistant
	UUID    string   `json:"uuid,omitempty"`
	Text    string   `json:"text"`
	Tokens  []string `json:"tokens,omitempty"` // of a user's message or an answer
	Session string   `json:"sessionId"`
	Pad     string   `json:"pad,omitempty"` // makes the saved conversation as large as a real one
}

// padding is beyond what errand keeps in Redis if it has an object store, in bytes.
const padding = 24 << 10

// transcript is a saved conversation. Each entry is written at once, so a crash loses none.
type transcript struct {
	id      string
	file    *os.File
	entries []entry
}

// openTranscript starts a conversation, or resumes the one that errand has put in place.
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
	if err := os.MkdirAll(place, 0o700); err != nil {
		return nil, fmt.Errorf("save session: %w", err)
	}
	var err error
	t.file, err = os.OpenFile(filepath.Join(place, t.id+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("save session: %w", err)
	}
	return t, nil
}

// slug is the name of a working directory below projects.
func slug(dir string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, dir)
}

func (t *transcript) read(path string) error {
	data, err := os.ReadFile(path)
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
	if len(t.entries) == 0 {
		pad := make([]byte, padding)
		_, _ = rand.Read(pad) // does not compress
		e.Pad = base64.StdEncoding.EncodeToString(pad)
	}
	t.entries = append(t.entries, e)
	line, err := json.Marshal(e)
	if err == nil {
		_, _ = t.file.Write(append(line, '\n')) // a full disk also loses the real CLI's entries
	}
}

// open returns the tokens that were received and not answered.
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

// last returns the tokens of the latest answer.
func (t *transcript) last() []string {
	for _, e := range slices.Backward(t.entries) {
		if e.Type == "assistant" {
			return e.Tokens
		}
	}
	return nil
}

// turns is the number of answers in the conversation, from which the real CLI continues to count its costs.
func (t *transcript) turns() (n int) {
	for _, e := range t.entries {
		if e.Type == "assistant" {
			n++
		}
	}
	return n
}

// unique removes repetitions and keeps the order.
func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
