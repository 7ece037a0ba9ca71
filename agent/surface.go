package agent

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"github.com/errand-fleet/errand/agent/internal/session"
)

// TestedCLI is the version of the CLI that this package is tested with. Newer ones are accepted with a notice.
const TestedCLI = "2.1.332"

// Surface is what can be learnt about a version of the CLI without a session: the flags in its help, and names in its
// program. All lists are sorted.
type Surface struct {
	Version  string   `json:"version"`
	Flags    []string `json:"flags"`
	Hooks    []string `json:"hooks"`    // events
	Messages []string `json:"messages"` // subtypes of messages and of control requests
	Settings []string `json:"settings"` // most of the top-level ones
}

// testedSurface is the Surface of TestedCLI. TestCLISurface -record writes it.
//
//go:embed surface.json
var testedSurface []byte

// Tested returns the Surface of TestedCLI.
func Tested() (s Surface, err error) {
	if err := json.Unmarshal(testedSurface, &s); err != nil {
		return s, fmt.Errorf("read what the CLI %s offers: %w", TestedCLI, err)
	}
	return s, nil
}

// Since lists what differs from an earlier Surface, one difference an entry.
func (s Surface) Since(before Surface) (differences []string) {
	for _, kind := range []struct {
		name        string
		before, now []string
	}{
		{"flag", before.Flags, s.Flags},
		{"hook", before.Hooks, s.Hooks},
		{"message", before.Messages, s.Messages},
		{"setting", before.Settings, s.Settings},
	} {
		for _, name := range kind.now {
			if !slices.Contains(kind.before, name) {
				differences = append(differences, "new "+kind.name+" "+name)
			}
		}
		for _, name := range kind.before {
			if !slices.Contains(kind.now, name) {
				differences = append(differences, "no "+kind.name+" "+name)
			}
		}
	}
	return differences
}

// Surface reads what the CLI offers. That takes seconds, because the program has hundreds of megabytes.
func (r *Runner) Surface(ctx context.Context) (s Surface, err error) {
	cli, e := r.cli()
	if e != nil {
		return s, e
	}
	dirs, err := session.Make(r.cfg.TempDir)
	if err != nil {
		return s, fmt.Errorf("examine the CLI: %w", err)
	}
	defer func() { _ = dirs.Remove() }()
	out, err := r.ask(ctx, cli, dirs, "--version")
	if err != nil {
		return s, fmt.Errorf("ask the CLI for its version: %w", err)
	}
	s.Version = version.FindString(string(out))
	help, err := r.ask(ctx, cli, dirs, "--help")
	if err != nil {
		return s, fmt.Errorf("ask the CLI for its help: %w", err)
	}
	s.Flags = sorted(flagInHelp.FindAllSubmatch(help, -1))
	program, err := os.Open(cli)
	if err != nil {
		return s, fmt.Errorf("read the CLI's program: %w", err)
	}
	defer program.Close()
	return s, s.read(program)
}

// flagInHelp matches a long flag where the help lists it.
var flagInHelp = regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[\w-]+)`)

// declared are the forms in which the CLI's program declares names. A form is only looked for around its mark.
var declared = []struct {
	mark []byte
	form *regexp.Regexp
	list func(*Surface) *[]string
}{
	{
		[]byte("hook_event_name:"), regexp.MustCompile(`hook_event_name:[\w$]+\("(\w+)"\)`),
		func(s *Surface) *[]string { return &s.Hooks },
	},
	{
		[]byte("subtype:"), regexp.MustCompile(`subtype:[\w$]+\("(\w+)"\)`),
		func(s *Surface) *[]string { return &s.Messages },
	},
	{
		[]byte(":()=>"), regexp.MustCompile(`[,{]([a-z]\w+):\(\)=>[^,;]{1,80}?\.optional\(\)`),
		func(s *Surface) *[]string { return &s.Settings },
	},
}

// around is the number of bytes before and after a mark that a form may take.
const around = 160

// read collects the names that a program declares.
func (s *Surface) read(program io.Reader) error {
	found := make([][][][]byte, len(declared))
	buf, kept := make([]byte, 4<<20), 0
	for {
		n, err := io.ReadFull(program, buf[kept:])
		text := buf[:kept+n]
		for i, d := range declared {
			for at := bytes.Index(text, d.mark); at >= 0; {
				window := text[max(0, at-around):min(len(text), at+around)]
				for _, m := range d.form.FindAllSubmatch(window, -1) {
					found[i] = append(found[i], [][]byte{nil, bytes.Clone(m[1])})
				}
				next := bytes.Index(text[at+1:], d.mark)
				if next < 0 {
					break
				}
				at += 1 + next
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the CLI's program: %w", err)
		}
		kept = copy(buf, text[len(text)-2*around:])
	}
	for i, d := range declared {
		*d.list(s) = sorted(found[i])
	}
	return nil
}

// sorted returns the first group of each match once.
func sorted(matches [][][]byte) (names []string) {
	for _, m := range matches {
		names = append(names, string(m[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
