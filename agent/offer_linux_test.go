package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// checkout has an agent, a command, and everything that it could run: a hook, a helper, a server. Each would leave a
// file.
func checkout(t *testing.T) (dir, ran string) {
	t.Helper()
	dir, ran = t.TempDir(), t.TempDir()
	touch := "touch " + filepath.Join(ran, "it")
	put(t, dir, map[string]string{
		".claude/agents/strategist.md":    "---\nname: strategist\ndescription: Plans ahead with sk-ant-test-credential\n---\nPlan.\n",
		".claude/commands/new-feature.md": "---\ndescription: Begins a feature\nargument-hint: \"[name]\"\n---\nBegin $ARGUMENTS.\n",
		".claude/settings.json": `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"` + touch +
			`"}]}]},"apiKeyHelper":"` + touch + `"}`,
		".mcp.json": `{"mcpServers":{"own":{"command":"sh","args":["-c","` + touch + `"]}}}`,
	})
	return dir, ran
}

// Nothing of the directory runs, as it would in a run (TestCLIOpensKnownFilesOnly).
func TestCLIOffersWhatItsDirectoryHas(t *testing.T) {
	t.Parallel()
	dir, ran := checkout(t)
	for name, test := range map[string]struct {
		spec Spec
		own  bool
	}{
		"trusted":           {Spec{Profile: Write, TrustedConfig: true}, true},
		"not trusted":       {Spec{Profile: Write}, false},
		"read-only profile": {Spec{Profile: Read, TrustedConfig: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newModel(t)
			r := newCLI(t, model)
			test.spec.ID, test.spec.Dir = unique("offer-"+strings.ReplaceAll(name, " ", "-")), dir
			offer, err := r.Offer(t.Context(), test.spec)
			if err != nil {
				t.Fatal(err)
			}
			agents := slices.ContainsFunc(offer.Agents, func(a OfferedAgent) bool {
				return a == OfferedAgent{"strategist", "Plans ahead with [redacted]"}
			})
			command := slices.ContainsFunc(offer.Commands, func(c OfferedCommand) bool {
				return c.Name == "new-feature" && c.Argument == "[name]"
			})
			if agents != test.own || command != test.own {
				t.Errorf("of the checkout's own: agent %v, command %v", agents, command)
			}
			if slices.ContainsFunc(offer.Commands, func(c OfferedCommand) bool { return c.Name == "compact" }) {
				t.Error("a command of the terminal is offered")
			}
			if !slices.ContainsFunc(offer.Models, func(m OfferedModel) bool {
				return m.Name == "opus" && len(m.Efforts) > 1
			}) {
				t.Errorf("models: %+v", offer.Models)
			}
			if asked := model.Requests(); len(asked) > 0 {
				t.Errorf("the model was asked: %s", asked[0].Body)
			}
			if left := marked(test.spec.ID); len(left) > 0 {
				t.Errorf("alive: %v", left)
			}
			if entries, _ := os.ReadDir(ran); len(entries) > 0 {
				t.Error("something of the checkout was run")
			}
			if entries, _ := os.ReadDir(r.cfg.LogDir); len(entries) > 0 {
				t.Errorf("it left a log: %v", entries)
			}
		})
	}
}

func TestOfferOfACLIThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for mode, class := range map[string]Class{"refuse": ClassConfig, "exit-2": ClassConfig, "mute": ClassStart} {
		b := newBench(t, mode)
		if mode == "mute" {
			b.startLimit = 100 * time.Millisecond
		}
		_, err := b.Offer(t.Context(), Spec{ID: unique("offer-" + mode), Dir: t.TempDir(), Profile: Write})
		if e, ok := errors.AsType[*Error](err); !ok || e.Class != class {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// The caller may give up: the CLI should end, and the error should be the cause.
func TestOfferEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mute")
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, enough)
	defer cancel()
	id := unique("offer-late")
	if _, err := b.Offer(ctx, Spec{ID: id, Dir: t.TempDir(), Profile: Write}); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	if left := marked(id); len(left) > 0 {
		t.Errorf("alive: %v", left)
	}
}
