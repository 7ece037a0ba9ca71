package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// called is a directory with a command, a skill and an agent, and a file outside that must not be read.
func called(t *testing.T) (dir, secret string) {
	t.Helper()
	dir, secret = t.TempDir(), filepath.Join(t.TempDir(), "secret.txt")
	for path, text := range map[string]string{
		secret:                        "SECRET-OUTSIDE\n",
		filepath.Join(dir, "key.pem"): "SECRET-INSIDE\n",
		filepath.Join(dir, ".claude/commands/look.md"):         "---\ndescription: looks\n---\nLOOK-HERE $ARGUMENTS and @key.pem\n",
		filepath.Join(dir, ".claude/skills/see/SKILL.md"):      "---\nname: see\ndescription: sees\n---\nSEE-THERE $ARGUMENTS\n",
		filepath.Join(dir, ".claude/agents/strategist.md"):     "---\nname: strategist\ndescription: Plans ahead\n---\nPlan.\n",
		filepath.Join(dir, ".claude/settings.json"):            `{"env":{"CLAUDE_CODE_DISABLE_FILE_MENTIONS":"0"}}`,
		filepath.Join(dir, ".claude/rules/unrelated/empty.md"): "-\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, secret
}

// The CLI reads no file that a text names as @path, by whatever way the text comes to it: neither policy nor log
// would see it.
func TestCLIReadsNoMentionedFiles(t *testing.T) {
	t.Parallel()
	dir, secret := called(t)
	mentions := "@" + secret + ` @"` + secret + `" @key.pem @key.pem#L1 ！@` + secret
	look := []modelfake.Turn{{Text: "Yes."}}
	skill := []modelfake.Turn{
		{Tools: []modelfake.ToolCall{{Name: "Skill", Input: map[string]string{"skill": "see", "args": mentions}}}},
		{Text: "Yes."},
	}
	for name, c := range map[string]struct {
		spec  Spec
		host  *host
		turns []modelfake.Turn
		want  string // what the model sees
	}{
		"words":        {Spec{Prompt: Message{Text: "Mind " + mentions}}, &host{}, look, "Mind @"},
		"words, first": {Spec{Prompt: Message{Text: mentions}}, &host{}, look, "key.pem"},
		"composed": {
			Spec{Prompt: Message{Text: "/look " + mentions, Composed: true}}, &host{}, look, "/look @",
		},
		"command": {Spec{Prompt: Message{Text: "/look " + mentions}}, &host{}, look, "LOOK-HERE @"},
		"command and file": {Spec{Prompt: Message{
			Text: "/look", Files: []File{{Name: "a " + mentions, Type: "text/plain", Data: []byte(mentions)}},
		}}, &host{}, look, "LOOK-HERE"},
		"unknown command": {Spec{Prompt: Message{Text: "/overlook " + mentions}}, &host{}, look, "/overlook @"},
		"agent": {
			Spec{Prompt: Message{Text: "Mind " + mentions, Agent: "strategist"}}, &host{}, look, "Mind @",
		},
		"a further message": {
			Spec{Prompt: Message{Text: "one"}}, &host{more: []Message{{Text: "Mind " + mentions}}}, look, "Mind @",
		},
		"what was said before": {Spec{
			Prompt: Message{Text: "one"}, History: []Turn{{Role: User, Text: "Mind " + mentions}},
		}, &host{}, look, "Mind @"},
		"a skill of the model": {Spec{Prompt: Message{Text: "one"}}, &host{}, skill, "SEE-THERE @"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newModel(t)
			model.Answer("SEE-THERE", modelfake.Turn{Text: "Yes."}) // what a skill says is a prompt to the fake
			model.Answer("", c.turns...)
			c.spec.ID, c.spec.Dir, c.spec.Profile, c.spec.TrustedConfig = "mentions-"+
				strings.NewReplacer(" ", "-", ",", "").Replace(name), dir, Write, true
			if res := runCLI(t, newCLI(t, model), c.spec, c.host); res.Outcome != Done {
				t.Fatalf("result %+v", res)
			}
			told := ""
			for _, r := range model.Requests() {
				told += string(r.Body)
			}
			if !strings.Contains(told, c.want) {
				t.Errorf("the model did not get %q: %s", c.want, told)
			}
			if strings.Contains(told, "SECRET-") {
				t.Error("a file reached the model")
			}
		})
	}
}

// An agent is called by its name, and the words that it is called with stay as they are. One that does not exist is
// refused.
func TestCLICallsAgents(t *testing.T) {
	t.Parallel()
	dir, _ := called(t)
	const called = "The user has expressed a desire to invoke the agent"
	for name, c := range map[string]struct {
		message Message
		profile Profile
		is      bool
		refused string
	}{
		"option":       {Message{Text: "Plan it", Agent: "strategist"}, Write, true, ""},
		"at-name":      {Message{Text: "@strategist: Plan it"}, Write, true, ""},
		"their-form":   {Message{Text: "@agent-strategist Plan it"}, Write, true, ""},
		"quoted-form":  {Message{Text: `@"strategist (agent)" Plan it`}, Write, true, ""},
		"composed":     {Message{Text: "@agent-strategist Plan it", Composed: true}, Write, false, ""},
		"in-the-text":  {Message{Text: "Plan it, @agent-strategist "}, Write, false, ""},
		"unknown-name": {Message{Text: "@agent-tactician Plan it"}, Write, false, ""},
		"unknown": {
			Message{Text: "Plan it", Agent: "tactician"}, Write, false, `unknown agent "tactician", available: `,
		},
		"read-only": {Message{Text: "Plan it", Agent: "Explore"}, Read, false, "this run cannot call agents"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newModel(t)
			model.Answer("", modelfake.Turn{Text: "Planned."})
			res := runCLI(t, newCLI(t, model), Spec{
				ID: "agents-" + name, Dir: dir, Profile: c.profile, TrustedConfig: true, Prompt: c.message,
			}, &host{})
			if c.refused != "" {
				if res.Outcome != Failed || res.Error.Class != ClassInput ||
					!strings.Contains(res.Error.User, c.refused) || len(model.Requests()) > 0 {
					t.Errorf("result %+v, %d requests", res, len(model.Requests()))
				}
				if c.profile == Write && !strings.Contains(res.Error.User, "strategist") {
					t.Errorf("the known ones are not named: %s", res.Error.User)
				}
				return
			}
			body := string(model.Requests()[0].Body)
			if strings.Contains(body, called) != c.is || !strings.Contains(body, "Plan it") {
				t.Errorf("result %+v, request %s", res, body)
			}
		})
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
