package instructions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// collect returns the instructions of a commit with these files.
func collect(t *testing.T, files map[string]string) Set {
	t.Helper()
	set, err := Collect(slices.Sorted(maps.Keys(files)), func(names []string, most, room int) (blobs []Blob, _ error) {
		for _, name := range names {
			content, found := files[name]
			b := Blob{Content: content, Size: len(content)}
			if !found || content == "link" {
				b = Blob{Size: -1}
			}
			if b.Size > most {
				b.Content = ""
			}
			if len(b.Content) > room {
				b.Content, b.Unread = "", true
			}
			room -= len(b.Content)
			blobs = append(blobs, b)
		}
		return blobs, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// texts lists the texts of a set as "name | paths".
func texts(s Set) (list []string) {
	for _, t := range s.Texts {
		list = append(list, strings.TrimSuffix(t.Name+" | "+strings.Join(t.Paths, " "), " | "))
	}
	return list
}

func TestCollectsAsTheCLIDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"CLAUDE.md before AGENTS.md": {
			map[string]string{"CLAUDE.md": "a", "AGENTS.md": "b", "x/AGENTS.md": "c", ".github/CLAUDE.md": "d"},
			[]string{"CLAUDE.md", ".github/CLAUDE.md | .github/**", "x/AGENTS.md | x/**"},
		},
		"in .claude": {
			map[string]string{
				".claude/CLAUDE.md": "a", "AGENTS.md": "b", "CLAUDE.local.md": "c", ".claude/AGENTS.md": "d",
				"x/.claude/CLAUDE.md": "e", ".claude/skills/s/CLAUDE.md": "f", ".claude/errand/AGENTS.md": "g",
			},
			[]string{"CLAUDE.local.md", ".claude/CLAUDE.md", "x/.claude/CLAUDE.md | x/**"},
		},
		"rules": {
			map[string]string{
				".claude/rules/all.md": "a", ".claude/rules/go/some.md": "---\npaths: [\"**/*.{go,mod}\", web]\n---\nb",
				"x/.claude/rules/r.md": "---\npaths: a/*.{b, c}, d\n---\nc", ".claude/rules/r.txt": "d",
			},
			[]string{
				".claude/rules/all.md", ".claude/rules/go/some.md | **/*.go **/*.mod web",
				"x/.claude/rules/r.md | x/a/*.b x/a/*.c x/d",
			},
		},
		"imports": {
			map[string]string{
				"CLAUDE.md": "See @docs/a.md, **@b.md**, @my\\ words.md#top and @CLAUDE.md; ask @ann or me@c.md.\n" +
					"@/etc/passwd @~/x @../../etc/passwd @/proc/self/environ @docs",
				"docs/a.md": "@../b.md @../CLAUDE.md @d.md", "b.md": "b", "my words.md": "w", "c.md": "c",
				"docs/d.md": "d", "x/CLAUDE.md": "@../b.md @own.md", "x/own.md": "o", "y/CLAUDE.md": "@../x/own.md",
			},
			[]string{
				"CLAUDE.md", "docs/a.md", "b.md", "docs/d.md", "my words.md", "x/CLAUDE.md | x/**", "x/own.md | x/**",
				"y/CLAUDE.md | y/**", "x/own.md | y/**",
			},
		},
		"names": {
			map[string]string{"CLAUDE.md/x": "a", "two words/CLAUDE.md": "b", "claude.md": "c", "a\nb/CLAUDE.md": "d"},
			[]string{"two words/CLAUDE.md | two words/**"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := collect(t, c.files)
			if diff := cmp.Diff(c.want, texts(set)); diff != "" || len(set.Notes) > 0 {
				t.Errorf("texts (-want +got):\n%s\nnotes: %q", diff, set.Notes)
			}
		})
	}
}

// Everything is bounded, and what is missing is said.
func TestCollectIsBounded(t *testing.T) {
	t.Parallel()
	chain, many := map[string]string{"CLAUDE.md": "@1.md"}, map[string]string{}
	for i := range 20 {
		chain[fmt.Sprintf("%d.md", i)] = fmt.Sprintf("@%d.md", i+1)
	}
	for i := range 1000 {
		many[fmt.Sprintf("%d/CLAUDE.md", i)] = strings.Repeat("word ", 4000)
	}
	much, large := map[string]string{}, strings.Repeat("\n", maxRead)
	for i := range maxAll/maxRead + 13 {
		much[fmt.Sprintf("%d/CLAUDE.md", i)] = large
	}
	patterns := map[string]string{}
	for i := range 11 {
		patterns[fmt.Sprintf(".claude/rules/%d.md", i)] = fmt.Sprintf("---\npaths: %s\n---\nx", strings.Repeat("a/*,", 100))
	}
	for name, c := range map[string]struct {
		files map[string]string
		texts int
		note  string
	}{
		"10 MB":    {map[string]string{"CLAUDE.md": strings.Repeat("x", 10<<20)}, 0, "it has 10240 KiB"},
		"long":     {map[string]string{"CLAUDE.md": strings.Repeat("é", MaxFile)}, 1, "is cut"},
		"link":     {map[string]string{"CLAUDE.md": "link"}, 0, "a link out of it"},
		"binary":   {map[string]string{"CLAUDE.md": "a\x00b"}, 0, "not text"},
		"no UTF-8": {map[string]string{"CLAUDE.md": "a\xff"}, 0, "not text"},
		"cycle":    {map[string]string{"CLAUDE.md": "@a.md", "a.md": "@CLAUDE.md @a.md"}, 2, ""},
		"too deep": {chain, maxDepth + 1, "only 5 levels"},
		"too many": {many, maxLater/20_000 + 1, "958 more files"},
		"patterns": {patterns, 10, "more than 1000 patterns"},
		"a pattern": {
			map[string]string{".claude/rules/a.md": "---\npaths: " + strings.Repeat("*", 300) + "\n---\nx"}, 0, "200 bytes",
		},
		"of a rule": {
			map[string]string{".claude/rules/a.md": "---\npaths: " + strings.Repeat("a,", 101) + "\n---\nx"}, 1, "more than 100",
		},
		"too much": {much, 0, "3 more files"},
		"imports": {
			map[string]string{"CLAUDE.md": strings.Repeat("@a.", 40_000) + " @b", "b": "b"}, 1, "Not all that CLAUDE.md imports",
		},
		"one skill": {map[string]string{".claude/skills/s/x": strings.Repeat("x", 1<<20)}, 0, "too many"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := collect(t, c.files)
			if len(set.Texts) != c.texts || !strings.Contains(strings.Join(set.Notes, "\n"), c.note) ||
				c.note == "" && set.Notes != nil {
				t.Errorf("%d texts, notes %q", len(set.Texts), set.Notes)
			}
			total := 0
			for _, text := range set.Texts {
				if total += len(text.Text); len(text.Text) > MaxFile+100 || strings.Contains(text.Text, "\uFFFD") {
					t.Errorf("%s has %d bytes", text.Name, len(text.Text))
				}
			}
			if total > maxLater+maxAlways {
				t.Errorf("%d bytes", total)
			}
		})
	}
}

// Patterns are counted while they expand: a rule of a few bytes could have millions. This test is not parallel, because
// it counts what is allocated.
func TestPatternsDoNotGrow(t *testing.T) {
	short := strings.Repeat("{a,b}", 20)
	for name, paths := range map[string]string{
		"a pattern": strings.Repeat("{a,b}", 199), "many patterns": strings.TrimRight(strings.Repeat(short+",", 3000), ","),
	} {
		files := map[string]string{".claude/rules/a.md": "---\npaths: " + paths + "\n---\nx"}
		if n := testing.AllocsPerRun(1, func() { collect(t, files) }); n > 50_000 {
			t.Errorf("%s: %.0f allocations", name, n)
		}
		if set := collect(t, files); len(set.Texts) != 1 || len(set.Texts[0].Paths) != maxPaths ||
			!strings.Contains(strings.Join(set.Notes, ""), "more than 100 patterns") {
			t.Errorf("%s: %+v", name, set)
		}
	}
}

// However many texts have words after an @, their files are looked for together.
func TestImportsAreLookedForTogether(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprint(i, "/AGENTS.md")] = "@Test and @Before\n"
		files[fmt.Sprintf(".claude/rules/%d.md", i)] = "@Test\n"
	}
	reads := 0
	set, err := Collect(slices.Sorted(maps.Keys(files)), func(names []string, _, _ int) (blobs []Blob, _ error) {
		reads++
		for _, name := range names {
			content, found := files[name]
			blobs = append(blobs, Blob{Content: content, Size: len(content)})
			if !found {
				blobs[len(blobs)-1].Size = -1
			}
		}
		return blobs, nil
	})
	if err != nil || len(set.Texts) != 200 || reads != 4 {
		t.Errorf("%d texts after %d reads, %v", len(set.Texts), reads, err)
	}
}

// What is left of a skill is words: nothing in its head or its text makes the CLI run or permit anything.
func TestSkillsAreWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Do it.\n": "---\nname: s\n---\nDo it.\n",
		"\ufeff---\r\nname: \"x y\"\r\ndescription: a\r\nhooks: {Stop: []}\r\nallowed-tools: Bash\r\nmodel: opus\r\n---\r\nb\r\n": "---\n" +
			"description: a\nname: x y\n---\nb\n",
		"---\ndescription: a: b\nhooks: [\n---\nc":                "---\ndescription: 'a: b'\nname: s\n---\nc",
		"---\n---\n---\nhooks: 1\n---\nc":                         "---\nname: s\n---\n---\nhooks: 1\n---\nc",
		"---\nname: [1]\ndescription: {a: !`id`}\n---\nc":         "---\ndescription: '{a: ! `id`}'\nname: '[1]'\n---\nc",
		"---\ndescription: \"!`id`\"\ntools: [Read, Grep]\n---\n": "---\ndescription: '! `id`'\nname: s\ntools: Read, Grep\n---\n",
		"a !`id` b\n```!\nid\n```\n!```!`id`":                     "---\nname: s\n---\na ! `id` b\n``` !\nid\n```\n! ``` ! `id`",
		"---\ndescription: \"```!!\"\ntools: [\"```!\"]\n---\n```!!\nid": "---\ndescription: '``` !!'\nname: s\n" +
			"tools: '``` !'\n---\n``` !!\nid",
	} {
		set := collect(t, map[string]string{".claude/skills/s/SKILL.md": in})
		if got := set.Skills[0].Content; got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		if got := set.Skills[0].Content; strings.Contains(got, "!`") || strings.Contains(got, "```!") {
			t.Errorf("%q can run something", got)
		}
	}
	set := collect(t, map[string]string{
		".claude/skills/s/SKILL.md": "a", ".claude/skills/s/run.sh": "b", ".claude/skills/.claude-plugin/plugin.json": "c",
		".claude/commands/x/go.md": "d", ".claude/agents/a.md": "e", "sub/.claude/skills/s/SKILL.md": "f",
		".claude/hooks/hooks.json": "g", ".claude/settings.json": "h", "sub/.claude/skills/m/SKILL.md": "i",
		".claude/skills/s/.mcp.json": "j",
	})
	var got []string
	for _, f := range set.Skills {
		got = append(got, f.Name)
	}
	want := []string{"agents/a.md", "commands/x/go.md", "skills/s/SKILL.md", "skills/s/run.sh", "skills/m/SKILL.md"}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if names := set.Names(); !slices.Contains(names, "command x:go") || len(set.Notes) != 1 {
		t.Errorf("names %q, notes %q", names, set.Notes)
	}
}

// The CLI finds skills, commands and agents whatever the case of their names, so none of them stays as it is.
func TestSkillsAreWordsInAnyCase(t *testing.T) {
	t.Parallel()
	const evil = "---\nhooks: {Stop: []}\nallowed-tools: Bash\n---\n"
	files := map[string]string{}
	for _, name := range []string{
		"skills/a/skill.MD", "skills/a/SKILL.md", "skills/b/Skill.md", "skills/c/d/sKILL.Md", "commands/e/SKILL.MD",
		"commands/f.MD", "commands/SKILL.md", "commands/g.txt", "commands/h", "commands/i.mdx", "agents/j.Md",
		"agents/k.sh", "agents/skill.md", "skills/a/run.sh", "commands/F.md",
	} {
		files[".claude/"+name] = evil
	}
	set := collect(t, files)
	got := map[string]string{}
	for _, f := range set.Skills {
		got[f.Name] = f.Content
		if name, ok := strings.CutPrefix(f.Content, "---\nname: "); ok {
			got[f.Name] = strings.TrimSuffix(name, "\n---\n")
		}
	}
	want := map[string]string{
		"skills/a/SKILL.md": "a", "skills/b/Skill.md": "b", "skills/c/d/sKILL.Md": "c:d", "commands/e/SKILL.MD": "e",
		"commands/F.md": "F", "commands/SKILL.md": "SKILL", "agents/j.Md": "j", "agents/skill.md": "skill",
		"skills/a/run.sh": evil,
	}
	if diff := cmp.Diff(want, got); diff != "" || len(set.Notes) != 6 {
		t.Errorf("files (-want +got):\n%s\nnotes: %q", diff, set.Notes)
	}
}

// A plugin has the files of several directories, which may not fit together.
func TestSkillsHavePlaces(t *testing.T) {
	t.Parallel()
	set := collect(t, map[string]string{
		".claude/commands/a.md": "x", "pkg/.claude/commands/A.md/b.md": "x", ".claude/skills/s/x/y": "x",
		"pkg/.claude/skills/s/x": "x", ".claude/commands/" + strings.Repeat("n", 300) + ".md": "x",
	})
	if len(set.Skills) != 2 || len(set.Notes) != 3 {
		t.Errorf("files %q, notes %q", set.Names(), set.Notes)
	}
}

// Texts about some paths come at once as far as there is room for them.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		root, first, second int // bytes
		want                []string
	}{
		{0, 10, 10, []string{"root", "first", "second"}},
		{0, maxAlways, 0, []string{"root", "first", "second"}},
		{0, maxAlways, 1, []string{"root", "first"}},
		{1, maxAlways, 10, []string{"root", "second"}},
		{maxAlways + 1, 1, 0, []string{"root"}},
	} {
		s := Set{Texts: []Text{
			{Name: "root", Text: strings.Repeat("x", c.root)},
			{Name: "first", Text: strings.Repeat("x", c.first), Paths: []string{"a/**"}},
			{Name: "second", Text: strings.Repeat("x", c.second), Paths: []string{"b/**"}},
			{Name: "other", Paths: []string{"c/**"}},
		}}
		got := s.AtOnce(func(paths []string) bool { return paths[0] != "c/**" })
		var names []string
		for _, text := range got.Texts {
			if len(text.Paths) == 0 {
				names = append(names, text.Name)
			}
		}
		if !slices.Equal(names, c.want) || len(s.Texts[1].Paths) == 0 {
			t.Errorf("%+v: at once %q", c, names)
		}
	}
}
