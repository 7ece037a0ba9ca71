package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/agent/internal/session"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// shellSkill is a checkout whose command and skill have shell commands in their text. Its settings allow them, and ask
// the CLI to execute them.
func shellSkill(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for path, text := range map[string]string{
		".claude/commands/look.md":    "---\ndescription: looks\nallowed-tools: Bash(*)\n---\nLOOK !`touch ran && echo OUT`PUT\n",
		".claude/skills/see/SKILL.md": "---\nname: see\ndescription: sees\nallowed-tools: Bash(*)\n---\nSEE !`touch ran && echo OUT`PUT\n\n```!\ntouch ran-block\n```\n",
		".claude/settings.json":       `{"disableSkillShellExecution":false,"permissions":{"allow":["Bash(*)"]}}`,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The CLI executes shell commands in the text of skills and commands only for a trusted checkout, and each one passes
// the rules and people as a call of the agent does, and stands in the log.
func TestCLIShellInSkills(t *testing.T) {
	t.Parallel()
	rule := func(r Rule) []Rule { return []Rule{r} }
	for name, c := range map[string]struct {
		spec  Spec
		allow bool // what a person says
		runs  bool
		told  string // to the model
	}{
		"untrusted": {},
		"inert":     {spec: Spec{TrustedConfig: true, inert: true}, told: "disabled by policy"},
		"trusted":   {spec: Spec{TrustedConfig: true}, runs: true, told: "OUTPUT"},
		"another-rule": {
			spec: Spec{TrustedConfig: true, Rules: rule(Rule{Tool: "Bash", Input: "rm *", Action: Deny})},
			runs: true, told: "OUTPUT",
		},
		"denied": {spec: Spec{TrustedConfig: true, Rules: rule(
			Rule{Tool: "Bash", Input: "touch *", Action: Deny, Reason: "Touch nothing."},
		)}, told: "Touch nothing."},
		"person-allows": {
			spec:  Spec{TrustedConfig: true, Rules: rule(Rule{Tool: "Bash", Input: "touch *", Action: Ask})},
			allow: true, runs: true, told: "OUTPUT",
		},
		"person-denies": {
			spec: Spec{TrustedConfig: true, Rules: rule(Rule{Tool: "Bash", Input: "touch *", Action: Ask})},
			told: "Not now.",
		},
		"done-elsewhere": {spec: Spec{TrustedConfig: true, Rules: rule(
			Rule{Tool: "Bash", Action: Delegate, Run: func(context.Context, ToolRequest) (string, error) {
				return "DELEGATED", nil
			}},
		)}, told: "DELEGATED"},
	} {
		for command, first := range map[string][]modelfake.Turn{
			"look": nil,
			"see":  {{Tools: []modelfake.ToolCall{{Name: "Skill", Input: map[string]string{"skill": "see"}}}}},
		} {
			t.Run(name+"/"+command, func(t *testing.T) {
				t.Parallel()
				model := newModel(t)
				model.Answer("SEE", modelfake.Turn{Text: "Yes."}) // the text of a skill is a prompt to the fake
				model.Answer("", append(first, modelfake.Turn{Text: "Yes."})...)
				s := c.spec
				s.ID, s.Dir, s.Profile = "shell-"+name+"-"+command, shellSkill(t), Write
				s.Prompt.Text = "Use it."
				if first == nil {
					s.Prompt.Text = "/" + command
				}
				r := newCLI(t, model)
				h := &host{permit: func(ToolRequest) Decision { return Decision{Allow: c.allow, Reason: "Not now."} }}
				if res := runCLI(t, r, s, h); res.Outcome != Done {
					t.Errorf("result %+v", res)
				}
				for _, made := range []string{"ran", "ran-block"} {
					if made == "ran-block" && command == "look" {
						continue
					}
					if _, err := os.Stat(filepath.Join(s.Dir, made)); (err == nil) != c.runs {
						t.Errorf("%s: %v", made, err)
					}
				}
				if told := bodies(model); !strings.Contains(told, c.told) {
					t.Errorf("the model was not told %q", c.told)
				}
				log, err := os.ReadFile(r.logPath(unique(s.ID), ".log"))
				want := s.TrustedConfig && !s.inert
				if err != nil || strings.Contains(string(log), "! The text of /"+command+
					" asks for a command: Running touch ran && echo OUT") != want {
					t.Errorf("log, %v:\n%s", err, log)
				}
			})
		}
	}
}

// bodies is everything that the model was sent.
func bodies(model *modelfake.Server) (all string) {
	for _, q := range model.Requests() {
		all += string(q.Body)
	}
	return all
}

// A run whose checkout is not trusted executes no shell in skills, wherever they come from.
func TestNoShellInSkillsWithoutTrust(t *testing.T) {
	t.Parallel()
	for _, s := range []Spec{
		{Profile: Write},
		{Profile: Untrusted, TrustedConfig: true},
		{Profile: Write, TrustedConfig: true, inert: true},
		{Profile: Write, TrustedConfig: true},
	} {
		s.Dir = t.TempDir()
		dirs, err := session.Make(agenttest.ShortTemp(t))
		if err != nil {
			t.Fatal(err)
		}
		args, err := settingArguments(s, dirs)
		if err != nil {
			t.Fatal(err)
		}
		path := strings.TrimPrefix(args[len(args)-1], "--settings=")
		settings, err := os.ReadFile(path)
		off := strings.Contains(string(settings), `"disableSkillShellExecution":true`)
		if err != nil || off == (s.trusts() && !s.inert) {
			t.Errorf("%+v: %s, %v", s, settings, err)
		}
	}
}
