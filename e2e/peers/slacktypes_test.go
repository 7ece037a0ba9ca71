package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The compiler accepts every recorded call of Slack and its blocks as the types of Slack's SDK, and none with a value
// of another type or another field: TestMutations asks the same of the schemas that are made from these types.
func TestSlackTypes(t *testing.T) {
	t.Parallel()
	var lines []string
	spoilt := map[int]string{} // by line
	for _, c := range readCalls(t) {
		if strings.Contains(c.Name, " ") {
			continue // GitHub's
		}
		lines = append(lines, typed(t, c.Name, c.Args))
		for _, m := range mutations(c.Args, "") {
			// the field may be optional
			if what := c.Name + " argument: " + m.what; !strings.HasPrefix(m.what, "without ") && !isOpen(what) {
				lines = append(lines, typed(t, c.Name, m.value.(object)))
				spoilt[len(lines)] = what
			}
		}
	}
	refused := compile(t, lines)
	for i := range lines {
		said, wrong := refused[i+1]
		what, mutated := spoilt[i+1]
		switch {
		case wrong && !mutated:
			t.Errorf("the compiler refuses a recorded call: %s\n%s", said, lines[i])
		case mutated && !wrong:
			t.Errorf("the compiler accepts %s", what)
		}
	}
	if len(spoilt) < 500 {
		t.Errorf("only %d mutations", len(spoilt))
	}
}

// typed says in TypeScript that these are the arguments of a method. Its blocks are checked by themselves, because
// arguments may have blocks that the SDK does not know.
func typed(t *testing.T, method string, args object) string {
	t.Helper()
	view, _ := args["view"].(object)
	blocks, err := json.Marshal([]any{args["blocks"], view["blocks"]})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("{ const args: Arguments['%s'] = %s; const blocks: (Others['block'][] | null)[] = %s }",
		method, text, blocks)
}

var refusal = regexp.MustCompile(`(?m)^calls\.ts\((\d+),\d+\): (.*)$`)

// compile returns what the compiler says about the lines, by number. It must have nothing to say about slack.ts.
func compile(t *testing.T, lines []string) map[int]string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"node_modules", "package.json", "slack.ts", "tsconfig.json"} {
		from, err := filepath.Abs(name)
		if err == nil {
			err = os.Symlink(from, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lines = append(slices.Clone(lines), "import type { Arguments, Others } from './slack.js'")
	if err := os.WriteFile(filepath.Join(dir, "calls.ts"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(limited(t), filepath.Join("node_modules", ".bin", "tsc"), "--project", ".",
		"--pretty", "false")
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput() // it fails because of the mutations
	said := map[int]string{}
	for _, m := range refusal.FindAllStringSubmatch(string(out), -1) {
		line, _ := strconv.Atoi(m[1])
		said[line] = m[2]
	}
	rest := refusal.ReplaceAllString(string(out), "")
	if other := regexp.MustCompile(`(?m)^\S.*$`).FindString(rest); other != "" {
		t.Errorf("compile: %s", other)
	}
	return said
}
