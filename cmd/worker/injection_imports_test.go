package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// Every import that the CLI follows in a trusted repository's instructions comes from the base branch. Text that it
// does not take for an import reaches the model as it was written.
func TestInjectionByImports(t *testing.T) {
	t.Parallel()
	w := hostile(t)
	text := "Ask ann@host.\n\n```java\n@Override\n```\n\nThe rest is in @packages.\n"
	imports := []string{
		"@plain.md", "**@strong.md**", "(*@paired.md*)", "ann@host:*@behind.md*", "`code`@after.md",
		"@broken.md\u00a0is wide", "> @quoted.md",
		"- `in a list, @listed.md it is`", "<!-- a note --> @noted.md", "```\na\n```~~~\n@escaped.md\n```",
		"<!--\n```\n-->\n@uncommented.md\n```", "[a]: b \"t\n```\nt\"\n@defined.md\n```",
		"---\n```\n---\n@matter.md\n```", "- a\n  ```\nb\n@outdented.md\n  ```",
	}
	base, head := map[string]string{}, map[string]string{"packages/EVIL": "EVIL", "host": "EVIL"}
	for i, line := range imports {
		base[fmt.Sprintf(".claude/rules/%d.md", i)] = strings.ReplaceAll(line, "@", "@../../") + "\n"
		for _, word := range strings.FieldsFunc(line, func(r rune) bool {
			return strings.ContainsRune(" \n\u00a0*@,:`()", r)
		}) {
			if strings.HasSuffix(word, ".md") {
				base[word], head[word] = "BASE("+word+")\n@../../outside\n", "EVIL"
			}
		}
	}
	base["packages/a"], head["outside"] = "a\n", "EVIL"
	base["CLAUDE.md"] = text
	for branch, files := range map[string]map[string]string{"main": base, "evil": head} {
		if _, err := w.github.Repo(repo).Commit(branch, "main", files, "imports"); err != nil {
			t.Fatal(err)
		}
	}
	w.model.Answer("", modelfake.Turn{Text: "Yes."})
	w.standalone()
	w.answers(w.mention("[branch=evil] look", ""), 1)
	all := ""
	for _, r := range w.model.Requests() {
		all += string(r.Body)
	}
	if strings.Contains(all, "EVIL") {
		t.Errorf("unapproved text reached the model: %.300s", all[max(0, strings.Index(all, "EVIL")-200):])
	}
	found := 0
	for name := range base {
		if !strings.HasPrefix(base[name], "BASE") {
			continue
		}
		found++
		if !strings.Contains(all, "BASE("+name+")") {
			t.Errorf("%s did not reach the model", name)
		}
	}
	quoted, _ := json.Marshal(text)
	if as := strings.Trim(string(quoted), `"`); found != len(imports) || !strings.Contains(all, as) {
		t.Errorf("%d imports; the model should get %s", found, as)
	}
}
