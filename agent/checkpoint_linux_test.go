package agent

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

const checkpointEvery = 20 * time.Millisecond

// seq is a command whose output is too long for a message: the CLI keeps it in a file of the session.
const seq = "seq 1 20000"

var resultPath = regexp.MustCompile(`/[^" ]*/tool-results/[^" \\]*`)

// A run that dies is gone on with from its checkpoint, on another machine: what was said is there, and long tool
// results can be read.
func TestCLICheckpoint(t *testing.T) {
	t.Parallel()
	model, dir := newModel(t), t.TempDir()
	thinking := make(chan struct{}, 1)
	model.Answer("count",
		modelfake.Turn{Text: "I count.", Tools: bash(seq).Tools},
		modelfake.Turn{Started: thinking, Hang: true})
	ctx, stop := context.WithCancelCause(t.Context())
	var kept Session
	prompt := Message{ID: "0d9ee9d7-64ba-4a7c-a5a5-2b2d6d7a3f10", Text: "count"}
	res, err := newCLI(t, model).Run(ctx, Spec{
		ID: "checkpointed", Dir: dir, Prompt: prompt, Profile: Write, CheckpointEvery: checkpointEvery,
		Checkpoint: func(_ context.Context, s Session) {
			if len(thinking) > 0 && says(s, "persistedOutputPath") {
				kept = s
				stop(errors.New("the machine burns down"))
			}
		},
	}, &host{})
	if err != nil || res.Outcome != Stopped || !kept.Holds(prompt.ID) || kept.ID != res.Session.ID {
		t.Fatalf("outcome %s, %v; checkpoint of %s with %d bytes", res.Outcome, err, kept.ID, len(kept.Data))
	}

	elsewhere := t.TempDir()
	model.Answer("go on", modelfake.Turn{Text: "I have counted."})
	h := &host{more: []Message{{Text: "show me"}}}
	h.on = func(e Event) {
		if e.Kind != TurnEnd || e.Text != "I have counted." {
			return
		}
		all := model.Requests()
		body := string(all[len(all)-1].Body)
		path := resultPath.FindString(body)
		if !strings.Contains(body, "I count.") || strings.Contains(path, dir) {
			t.Errorf("the earlier conversation is not before the model, or its files are at %q", path)
		}
		model.Answer("show me",
			modelfake.Turn{Tools: []modelfake.ToolCall{{
				Name: "Read", Input: map[string]any{"file_path": path, "offset": 19999, "limit": 1},
			}}},
			modelfake.Turn{Text: "That is it."})
	}
	again := runCLI(t, newCLI(t, model), Spec{
		ID: "resumed", Dir: elsewhere, Prompt: Message{Text: "go on"}, Profile: Write, Resume: &kept,
	}, h)
	if again.Session.ID != kept.ID || again.Text != "I have counted.\n\nThat is it." {
		t.Errorf("session %s, want %s; text %q", again.Session.ID, kept.ID, again.Text)
	}
	for _, e := range h.events {
		if e.Kind == ToolResult && (e.Error || !strings.Contains(e.Text, "19999")) {
			t.Errorf("read of the long result: %q", e.Text)
		}
	}
}

// A checkpoint that hangs holds up nothing; there is one at a time, and it ends with the run.
func TestCLICheckpointHoldsUpNothing(t *testing.T) {
	t.Parallel()
	model := newModel(t)
	entered, gate := make(chan struct{}), make(chan struct{})
	model.Answer("wait", modelfake.Turn{Text: "done", Gate: gate})
	var calls atomic.Int32
	go func() {
		<-entered
		close(gate) // the model answers while the checkpoint hangs
	}()
	res := runCLI(t, newCLI(t, model), Spec{
		ID: "hanging", Prompt: Message{Text: "wait"}, CheckpointEvery: checkpointEvery,
		Checkpoint: func(ctx context.Context, _ Session) {
			if calls.Add(1) == 1 {
				close(entered)
			}
			<-ctx.Done()
		},
	}, &host{})
	if res.Outcome != Done || res.Text != "done" || calls.Load() != 1 {
		t.Errorf("outcome %s, text %q, %d checkpoints; want done with one", res.Outcome, res.Text, calls.Load())
	}
}

// A run that hides its session among many directories has its answer, and its log says why there is no session.
func TestSessionIsNotFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, "shell", func(c *Config) { c.TempDir = agenttest.Memory(t) })
	res := b.run(t, t.Context(), Spec{ID: unique("many-projects"), Prompt: Message{
		Text: "mkdir -p $CLAUDE_CONFIG_DIR/projects; cd $CLAUDE_CONFIG_DIR/projects; seq 10001 | xargs mkdir",
	}, Profile: Write}, &host{})
	log := b.read(t, "many-projects", ".log")
	if want := "the session is not saved: "; res.Outcome != Done || !strings.Contains(log, want) {
		t.Errorf("%s, %v, log %s", res.Outcome, res.Error, log)
	}
}
