package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/instructions"
)

// handed returns instructions of a repository whose files are these.
func handed(t *testing.T, repo, dir string, files map[string]string) Instructions {
	t.Helper()
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	set, err := instructions.Collect(names, func(names []string, _, _ int) (blobs []instructions.Blob, _ error) {
		for _, name := range names {
			blobs = append(blobs, instructions.Blob{Content: files[name], Size: len(files[name])})
		}
		return blobs, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return Instructions{Repo: repo, Dir: dir, Set: set}
}

// Instructions reach the model in every profile, at the start, in sub-agents, and when a file is touched; and nothing in
// them or in the clone is executed or obeyed by the CLI.
func TestCLIGetsInstructions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("many words\n", 2000) + "END OF SUB"
	for _, profile := range []Profile{Write, Read, Untrusted} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			model, dir, traps := newModel(t), t.TempDir(), t.TempDir()
			trap := filepath.Join(traps, "ran")
			put(t, dir, map[string]string{
				"sub/x.txt": "x\n", "CLAUDE.md": "OF THE HEAD", "sub/CLAUDE.md": "OF THE HEAD",
				".claude/settings.json": hooksFor(trap),
			})
			given := handed(t, "acme/api", dir, map[string]string{
				"CLAUDE.md": "ROOT TEXT\n@docs/style.md\n", "docs/style.md": "IMPORTED TEXT", "sub/CLAUDE.md": long,
				".claude/skills/deploy/SKILL.md": "---\ndescription: ON OFFER\nhooks: {Stop: [{hooks: [{type: command, " +
					"command: touch " + trap + "}]}]}\nallowed-tools: Bash\n---\nSKILL TEXT $ARGUMENTS !`touch " + trap +
					"`\n```!\ntouch " + trap + "\n```\n",
				".claude/skills/deploy/more.md": "MORE TEXT", ".claude/commands/greet.md": "COMMAND TEXT $ARGUMENTS\n",
				".claude/agents/critic.md": "---\nname: critic\ndescription: one\n---\nAGENT TEXT\n",
			})
			house := handed(t, "house", "", map[string]string{
				".claude/skills/house/SKILL.md": "---\ndescription: OF THE HOUSE\n---\nHOUSE TEXT !`touch " + trap + "`\n",
			})
			read := call("Read", "file_path", filepath.Join(dir, "sub/x.txt"))
			model.Answer("Go.", read, read, call("Skill", "skill", "deploy", "args", "now"))
			model.Answer("SKILL TEXT", call("Skill", "skill", "house"))
			model.Answer("HOUSE TEXT", modelfake.Turn{Text: "Read."})
			r := newCLI(t, model)
			runCLI(t, r, Spec{
				ID: "handed-" + string(profile), Dir: dir, Prompt: Message{Text: "Go."}, Profile: profile, System: "Of errand.",
				Instructions: []Instructions{
					house, TextInstructions("errand.yaml", "the fleet's", "FLEET TEXT"), given,
					TextInstructions("errand.yaml", "the channel's", "CHANNEL TEXT"),
				},
			}, &host{})
			requests := model.Requests()
			after := 0
			for _, want := range []string{"Of errand.", "FLEET TEXT", "ROOT TEXT", "IMPORTED TEXT", "CHANNEL TEXT"} {
				at := strings.Index(requests[0].System, want)
				if at < after {
					t.Errorf("the first request lacks %q, or has it too early", want)
				}
				after = at
			}
			first, last := string(requests[0].Body), string(requests[len(requests)-1].Body)
			if !strings.Contains(first, "ON OFFER") || !strings.Contains(first, "OF THE HOUSE") ||
				strings.Contains(first, "END OF SUB") {
				t.Errorf("the first request lacks the skills, or has more than is due")
			}
			if own := strings.Contains(first, "- code-review:"); own != (profile == Write) {
				t.Errorf("skills of the CLI itself are on offer: %v", own)
			}
			for _, want := range []string{"END OF SUB", "SKILL TEXT now ! `touch", "HOUSE TEXT ! `touch"} {
				if strings.Count(last, want) != 1 {
					t.Errorf("the last request has %q %d times", want, strings.Count(last, want))
				}
			}
			if strings.Contains(last, "OF THE HEAD") {
				t.Error("the head's instructions reached the model")
			}
			if _, err := os.Stat(trap); err == nil {
				t.Error("something was executed")
			}
		})
	}
}

// hooksFor returns settings with a hook for each event that a run certainly has.
func hooksFor(trap string) string {
	hook := fmt.Sprintf(`[{"hooks":[{"type":"command","command":"touch %s"}]}]`, trap)
	return `{"hooks":{"SessionStart":` + hook + `,"UserPromptSubmit":` + hook + `,"Stop":` + hook + `}}`
}

// call is a turn in which the model calls a tool.
func call(tool string, arguments ...string) modelfake.Turn {
	input := map[string]string{}
	for pair := range slices.Chunk(arguments, 2) {
		input[pair[0]] = pair[1]
	}
	return modelfake.Turn{Tools: []modelfake.ToolCall{{Name: tool, Input: input}}}
}

// Commands and agents of the repository are called by the names that they have there, sub-agents get the instructions,
// and a skill's other files can be read but not changed.
func TestCLICallsHandedSkills(t *testing.T) {
	t.Parallel()
	model, dir := newModel(t), t.TempDir()
	long := strings.Repeat("many words\n", 2000) + "END OF ROOT"
	given := handed(t, "acme/My API", dir, map[string]string{
		"CLAUDE.md": long, ".claude/skills/deploy/SKILL.md": "SKILL TEXT\n", ".claude/skills/deploy/more.md": "MORE TEXT",
		".claude/commands/greet.md": "COMMAND TEXT $ARGUMENTS\n",
		".claude/agents/critic.md":  "---\nname: critic\ndescription: one\n---\nAGENT TEXT\n",
	})
	model.Answer("COMMAND TEXT you", call("Agent", "description", "d", "prompt", "Look.", "subagent_type", "my-api:critic"),
		call("Skill", "skill", "deploy"))
	model.Answer("Look.", modelfake.Turn{Text: "Seen."})
	r := newCLI(t, model)
	spec := Spec{
		ID: "calls", Dir: dir, Prompt: Message{Text: "/greet you"}, Profile: Write, Instructions: []Instructions{given},
	}
	runCLI(t, r, spec, &host{})
	var sub, last modelfake.Request
	for _, q := range model.Requests() {
		if last = q; q.Text == "Look." {
			sub = q
		}
	}
	if !strings.Contains(sub.System, "AGENT TEXT") || strings.Count(string(sub.Body), "END OF ROOT") != 1 {
		t.Errorf("the sub-agent got\n%s", sub.Body)
	}
	found := regexp.MustCompile(`Base directory for this skill: ([^\\]*)`).FindStringSubmatch(string(last.Body))
	if found == nil {
		t.Fatalf("the skill was not used:\n%s", last.Body)
	}
}

// A run that trusts its directory has the operator's skills beside its own, whose files the CLI finds there.
func TestCLIGetsOperatorsSkillsBesideTrustedOnes(t *testing.T) {
	t.Parallel()
	model, dir := newModel(t), t.TempDir()
	skill := map[string]string{".claude/skills/deploy/SKILL.md": "---\ndescription: ON OFFER\n---\nx\n"}
	put(t, dir, skill)
	house := handed(t, "house", "", map[string]string{
		".claude/skills/house/SKILL.md": "---\ndescription: OF THE HOUSE\n---\nx\n",
	})
	model.Answer("Go.", modelfake.Turn{Text: "Done."})
	runCLI(t, newCLI(t, model), Spec{
		ID: "trusted-house", Dir: dir, Prompt: Message{Text: "Go."}, Profile: Write, TrustedConfig: true,
		Instructions: []Instructions{house, handed(t, "acme/api", dir, skill)},
	}, &host{})
	first := string(model.Requests()[0].Body)
	for _, want := range []string{"ON OFFER", "OF THE HOUSE"} {
		if strings.Count(first, want) != 1 {
			t.Errorf("the first request has %q %d times", want, strings.Count(first, want))
		}
	}
}
