package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	xterm "golang.org/x/term"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/display"
)

// field is a line that the person enters.
type field struct {
	label  string
	secret bool
}

// errAskOn is returned for answers that lead to another question.
var errAskOn = errors.New("there is another question")

// ask reads a line for each field and repeats this until accept takes the answers. An empty first answer leaves the
// others empty.
func (g *guide) ask(ctx context.Context, fields []field, accept func(answers []string) error) error {
	for {
		answers := make([]string, len(fields))
		for i, f := range fields {
			var err error
			if answers[i], err = g.readLine(f); err != nil {
				return err
			}
			if answers[i] == "" {
				break
			}
		}
		err := accept(answers)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !errors.Is(err, errAskOn) {
			g.refuse(err)
		}
	}
}

// refuse says why something is not used.
func (g *guide) refuse(err error) {
	printf(g.stderr, "%s\n", g.stderr.Paint(term.Red, display.Line(err.Error())))
}

// readLine reads a line, without showing it if it is a secret.
func (t *terminal) readLine(f field) (string, error) {
	label := f.label
	if f.secret {
		label += " (not shown)"
	}
	printf(t.stderr, "%s: ", label)
	if file, ok := t.world.stdin.(*os.File); ok && t.stdin.tty && f.secret {
		line, err := xterm.ReadPassword(int(file.Fd()))
		printf(t.stderr, "\n")
		if err != nil {
			return "", fmt.Errorf("read answer: %w", err)
		}
		return strings.TrimSpace(string(line)), nil
	}
	if t.lines == nil {
		t.lines = bufio.NewReader(t.stdin)
	}
	line, err := t.lines.ReadString('\n')
	if errors.Is(err, io.EOF) && line == "" {
		return "", errors.New("read answer: standard input has ended")
	}
	return strings.TrimSpace(line), nil
}
