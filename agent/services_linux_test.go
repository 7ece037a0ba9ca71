package agent

import (
	"strings"
	"testing"
)

// What the start leaves running is there for the CLI and ends with the run. It has none of the CLI's pipes.
func TestServices(t *testing.T) {
	t.Parallel()
	inBoth(t, "shell", func(t *testing.T, b *bench) {
		start := []string{"echo out; echo err >&2; read x || echo no input; ls -l /proc/$$/fd >$TMPDIR/open; export FOO=x", "sleep 1000 & echo $! >$TMPDIR/service"}
		script := `kill -0 $(cat $TMPDIR/service) && echo alive; cat $TMPDIR/start.log; grep -c 'pipe\|socket' $TMPDIR/open; echo "[$FOO]"`
		res := b.run(t, t.Context(), Spec{
			Profile: Write, Prompt: Message{Text: script}, Environment: Environment{Start: start},
		}, &host{})
		if want := "alive\nout\nerr\nno input\n0\n[]"; res.Outcome != Done || !strings.HasPrefix(res.Text, want) {
			t.Errorf("%v %q, want %q", res.Error, res.Text, want)
		}
		b.gone(t)
	})
}

// A start that fails ends the run before the agent begins, with the reason.
func TestServicesThatFail(t *testing.T) {
	t.Parallel()
	b := newBench(t, "shell")
	start := []string{"echo first", "echo no such database >&2; false", "echo not reached"}
	res := b.run(t, t.Context(), Spec{
		Profile: Write, Prompt: Message{Text: "echo done"}, Environment: Environment{Start: start},
	}, &host{})
	want := "The services of the repository could not be started: start ended with exit code 1. Its last line: no such database"
	if res.Outcome != Failed || res.Error.Class != ClassWorkspace || res.Error.User != want {
		t.Errorf("%s %v %q", res.Outcome, res.Error, res.Error.User)
	}
	s, err := b.Script(t.Context(), Script{
		ID: unique("services"), Dir: b.dir, Line: "echo done", Environment: Environment{Start: start},
	})
	if err != nil || s.Outcome != Failed || s.ExitCode != servicesBad ||
		s.Output != "first\nno such database\nstart ended with exit code 1" {
		t.Errorf("%+v %v", s, err)
	}
}
