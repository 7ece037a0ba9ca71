package agent

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// called is a directory with a command, a skill and an agent, and a file outside that must not be read.
func called(t *testing.T) (dir, secret string) {
	t.Helper()
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside, map[string]string{"secret.txt": "SECRET-OUTSIDE\n"})
	put(t, dir, map[string]string{
		"key.pem":                          "SECRET-INSIDE\n",
		".claude/commands/look.md":         "---\ndescription: looks\n---\nLOOK-HERE $ARGUMENTS and @key.pem\n",
		".claude/skills/see/SKILL.md":      "---\nname: see\ndescription: sees\n---\nSEE-THERE $ARGUMENTS\n",
		".claude/agents/strategist.md":     "---\nname: strategist\ndescription: Plans ahead\n---\nPlan.\n",
		".claude/settings.json":            `{"env":{"CLAUDE_CODE_DISABLE_FILE_MENTIONS":"0"}}`,
		".claude/rules/unrelated/empty.md": "-\n",
	})
	return dir, filepath.Join(outside, "secret.txt")
}

// The CLI reads no file that a text names as @path, by whatever way the text comes to it: neither policy nor log
// would see it.
func TestCLIReadsNoMentionedFiles(t *testing.T) {
	t.Parallel()
	dir, secret := called(t)
	mentions := "@" + secret + ` @"` + secret + `" @key.pem @key.pem#L1 ！@` + secret
	skill := call("Skill", "skill", "see", "args", mentions)
	for name, c := range map[string]struct {
		spec Spec
		more []Message
		want []string // what the model sees
	}{
		"words": {
			spec: Spec{
				Prompt:  Message{Text: mentions + " at the beginning"},
				History: []Turn{{Role: User, Text: "Earlier " + mentions}},
			},
			more: []Message{
				{Text: "Further " + mentions},
				{Text: "/look composed " + mentions, Composed: true},
				{Text: "/overlook " + mentions},
				{Text: "Mind " + mentions, Agent: "strategist"},
				{Text: "Use the skill."},
			},
			want: []string{
				"at the beginning", "Earlier @", "Further @", "/look composed @", "/overlook @", "Mind @", "SEE-THERE @",
			},
		},
		"command": {
			spec: Spec{Prompt: Message{Text: "/look " + mentions}},
			more: []Message{{
				Text: "/look again", Files: []File{{Name: "a " + mentions, Type: "text/plain", Data: []byte(mentions)}},
			}},
			want: []string{"LOOK-HERE @", "LOOK-HERE again"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newModel(t, modelfake.Turn{Text: "Yes."})
			model.Answer("Use the skill.", skill)
			model.Answer("SEE-THERE", modelfake.Turn{Text: "Yes."}) // what a skill says is a prompt to the fake
			c.spec.ID, c.spec.Dir, c.spec.Profile, c.spec.TrustedConfig = "mentions-"+name, dir, Write, true
			if res := runCLI(t, newCLI(t, model), c.spec, &host{more: c.more}); res.Outcome != Done {
				t.Fatalf("result %+v", res)
			}
			told := bodies(model)
			for _, want := range c.want {
				if !strings.Contains(told, want) {
					t.Errorf("the model did not get %q: %s", want, told)
				}
			}
			if strings.Contains(told, "SECRET-") {
				t.Error("a file reached the model")
			}
		})
	}
}

// An agent is called by its name, and the words that it is called with stay as they are.
func TestCLICallsAgents(t *testing.T) {
	t.Parallel()
	dir, _ := called(t)
	const called = "The user has expressed a desire to invoke the agent"
	messages := []struct {
		Message
		calls bool
	}{
		{Message{Text: "Plan it", Agent: "strategist"}, true},
		{Message{Text: "@strategist: Plan it"}, true},
		{Message{Text: "@agent-strategist Plan it"}, true},
		{Message{Text: `@"strategist (agent)" Plan it`}, true},
		{Message{Text: "@agent-strategist Plan it", Composed: true}, false},
		{Message{Text: "Plan it, @agent-strategist "}, false},
		{Message{Text: "@agent-tactician Plan it"}, false},
	}
	h := &host{}
	for _, m := range messages[1:] {
		h.more = append(h.more, m.Message)
	}
	model := newModel(t, modelfake.Turn{Text: "Planned."})
	runCLI(t, newCLI(t, model), Spec{
		ID: "agents", Dir: dir, Profile: Write, TrustedConfig: true, Prompt: messages[0].Message,
	}, h)
	requests := model.Requests()
	if len(requests) != len(messages) {
		t.Fatalf("%d requests for %d messages", len(requests), len(messages))
	}
	before := 0
	for i, m := range messages {
		body := string(requests[i].Body)
		if n := strings.Count(body, called); (n > before) != m.calls || strings.Count(body, "Plan it") != i+1 {
			t.Errorf("%q calls %d agents: %s", m.Text, n-before, body)
		} else {
			before = n
		}
	}
}

// An agent that does not exist, or that the profile cannot call, is refused.
func TestCLICallsNoUnknownAgent(t *testing.T) {
	t.Parallel()
	dir, _ := called(t)
	model := newModel(t)
	res := runCLI(t, newCLI(t, model), Spec{
		ID: "no-agent", Dir: dir, Profile: Write, TrustedConfig: true, Prompt: Message{Text: "Plan it", Agent: "tactician"},
	}, &host{})
	if e := res.Error; res.Outcome != Failed || e.Class != ClassInput || len(model.Requests()) > 0 ||
		!strings.Contains(e.User, `unknown agent "tactician", available: `) || !strings.Contains(e.User, "strategist") {
		t.Errorf("result %+v, %d requests", res, len(model.Requests()))
	}
	answer := jsontext.Value(`{"agents":[{"name":"Explore"}]}`)
	for profile, callable := range map[Profile]bool{Write: true, Read: false} {
		err := readCallable(answer, Spec{Profile: profile}).check(Message{Agent: "Explore"})
		if (err == nil) != callable || err != nil && !strings.Contains(err.Error(), "this run cannot call agents") {
			t.Errorf("%s: %v", profile, err)
		}
	}
}

// A name from a file's path should call nothing.
func TestQuoteName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"logo@2x.png": `"logo@2x.png"`, "a @/etc/passwd": `"a \u0040/etc/passwd"`, "。@agent-x": `"。\u0040agent-x"`,
		"a\n@\"x y\"": `"a\n@\"x y\""`,
	} {
		if got := QuoteName(name); got != want {
			t.Errorf("%q is %s", name, got)
		}
	}
}
