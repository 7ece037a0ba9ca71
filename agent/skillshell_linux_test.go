package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/agent/internal/session"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// shellSkills is a checkout with a command and skills whose texts have shell commands. Its settings allow them, and ask
// the CLI to execute them.
func shellSkills(t *testing.T, skills ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files := map[string]string{
		".claude/commands/look.md": "---\ndescription: looks\nallowed-tools: Bash(*)\n---\nLOOK !`touch look && echo OUT`PUT\n",
		".claude/settings.json":    `{"disableSkillShellExecution":false,"permissions":{"allow":["Bash(*)"]}}`,
	}
	for _, name := range skills {
		files[".claude/skills/"+name+"/SKILL.md"] = fmt.Sprintf("---\nname: %[1]s\ndescription: sees\nallowed-tools: Bash(*)\n---\n"+
			"SEE !`touch %[1]s && echo OUT-`%[1]s\n\n```!\ntouch %[1]s-block\n```\n", name)
	}
	put(t, dir, files)
	return dir
}

// The CLI executes shell commands in the text of skills and commands only for a trusted checkout, and each one passes
// the rules and people as a call of the agent does, and is in the log.
func TestCLIShellInSkills(t *testing.T) {
	t.Parallel()
	elsewhere := func(context.Context, ToolRequest) (string, error) { return "DELEGATED", nil }
	rules := []Rule{
		{Tool: "Bash", Input: "rm *", Action: Deny},
		{Tool: "Bash", Input: "touch denied*", Action: Deny, Reason: "Touch nothing."},
		{Tool: "Bash", Input: "touch asked*", Action: Ask},
		{Tool: "Bash", Input: "touch refused*", Action: Ask},
		{Tool: "Bash", Input: "touch elsewhere*", Action: Delegate, Run: elsewhere},
	}
	skills := []string{"free", "denied", "asked", "refused", "elsewhere"}
	for name, c := range map[string]struct {
		spec Spec
		ran  []string // which of the texts
		told []string // to the model
	}{
		"untrusted": {},
		"inert":     {spec: Spec{TrustedConfig: true, inert: true}, told: []string{"disabled by policy"}},
		"trusted": {
			Spec{TrustedConfig: true, Rules: rules},
			[]string{"look", "free", "asked"},
			[]string{"LOOK OUTPUT", "OUT-free", "OUT-asked", "Touch nothing.", "Not now.", "DELEGATED"},
		},
		"denied command": {
			spec: Spec{TrustedConfig: true, Rules: []Rule{{Tool: "Bash", Action: Deny, Reason: "Touch nothing."}}},
			told: []string{"Touch nothing."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var use modelfake.Turn
			for _, skill := range skills {
				use.Tools = append(use.Tools, call("Skill", "skill", skill).Tools...)
			}
			model := newModel(t, use, modelfake.Turn{Text: "Yes."})
			model.Answer("SEE", modelfake.Turn{Text: "Yes."}) // the text of a skill is a prompt to the fake
			s := c.spec
			s.ID, s.Dir, s.Profile = "shell-"+strings.ReplaceAll(name, " ", "-"), shellSkills(t, skills...), Write
			s.Prompt.Text = "/look"
			r := newCLI(t, model)
			h := &host{permit: func(r ToolRequest) Decision {
				return Decision{Allow: strings.Contains(r.Text, "touch asked"), Reason: "Not now."}
			}}
			if res := runCLI(t, r, s, h); res.Outcome != Done {
				t.Errorf("result %+v", res)
			}
			for _, text := range append(skills, "look") {
				made := []string{text}
				if text != "look" {
					made = append(made, text+"-block")
				}
				for _, file := range made {
					if _, err := os.Stat(filepath.Join(s.Dir, file)); (err == nil) != slices.Contains(c.ran, text) {
						t.Errorf("%s: %v", file, err)
					}
				}
			}
			all := bodies(model)
			for _, told := range c.told {
				if !strings.Contains(all, told) {
					t.Errorf("the model was not told %q", told)
				}
			}
			log := r.read(t, s.ID, ".log")
			if strings.Contains(log, "! The text of /look asks for a command: Running touch look && echo OUT") !=
				(s.TrustedConfig && !s.inert) {
				t.Errorf("log:\n%s", log)
			}
		})
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
