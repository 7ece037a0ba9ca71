package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// linked makes a directory with a link that leads out of it, and the link's target.
func linked(t *testing.T) (dir, outside string) {
	t.Helper()
	dir, outside = t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	return dir, outside
}

func file(path string) string { return `{"file_path":"` + path + `"}` }

func TestProfiles(t *testing.T) {
	t.Parallel()
	dir, outside := linked(t)
	further := t.TempDir()
	for _, c := range []struct {
		profile     Profile
		tool, input string
		want        Action
	}{
		{Write, "Write", file(dir + "/a/b/c.txt"), Allow},
		{Write, "Write", file(further + "/x"), Allow},
		{Write, "Edit", file("relative.txt"), Allow},
		{Write, "Write", file(outside + "/x"), Deny},
		{Write, "Write", file(dir + "/../x"), Deny},
		{Write, "Write", file("../x"), Deny},
		{Write, "Write", file(dir + "/link/x"), Deny},
		{Write, "Write", `{"File_Path":"x","file_path":"/etc/x"}`, Deny}, // the CLI tells upper from lower case
		{Write, "Write", `{"file_path":"/etc/x","File_Path":"x"}`, Deny},
		{Write, "Write", `{"file_path":"x","file_path":"/etc/x"}`, Deny},
		{Write, "Write", `{"file_path":["/etc/x"]}`, Deny},
		{Write, "NotebookEdit", `{"notebook_path":"` + outside + `/x.ipynb"}`, Deny},
		{Write, "Bash", `{"command":"ls /"}`, Allow},
		{Write, "WebFetch", `{"url":"https://example.org"}`, Allow},
		{Write, "mcp__x__y", `{"path":"/users/1"}`, Allow},
		{Read, "Read", file(dir + "/x"), Allow},
		{Read, "Read", file(outside + "/x"), Deny},
		{Read, "Read", `not json`, Deny},
		{Read, "Grep", `{"pattern":"x","path":"` + outside + `"}`, Deny},
		{Read, "Grep", `{"pattern":"x"}`, Allow},
		{Read, "Grep", `{"pattern":"/etc/.*"}`, Allow},
		{Read, "Grep", `{"pattern":"x","glob":"/etc/*"}`, Deny},
		{Read, "Glob", `{"pattern":"**/*.go"}`, Allow},
		{Read, "Glob", `{"pattern":"` + dir + `/**"}`, Allow},
		{Read, "Glob", `{"pattern":"` + outside + `/*"}`, Deny},
		{Read, "Glob", `{"pattern":"/{etc,proc}/*"}`, Deny},
		{Read, "Glob", `{"pattern":"link/name"}`, Deny},
		{Read, "Glob", `{"pattern":"link/*"}`, Deny},
		{Read, "Glob", `{"pattern":"name"}`, Allow},
		{Read, "Glob", `{"pattern":"*/../../*"}`, Deny},
		{Read, "Glob", `{"pattern":"*","path":"` + outside + `"}`, Deny},
		{Read, "Write", file(dir + "/x"), Deny},
		{Read, "Bash", `{"command":"ls"}`, Deny},
		{Read, "Novelty", `{}`, Deny},
		{Read, "StructuredOutput", `{}`, Allow},
		{Untrusted, "WebFetch", `{"url":"https://example.org"}`, Deny},
		{Untrusted, "mcp__x__y", `{}`, Deny},
		{Read, "mcp__tracker__find", `{}`, Allow},
		{Read, "mcp__track__find", `{}`, Deny},
		{Untrusted, "mcp__errand__post_update", `{}`, Allow},
	} {
		p := Policy{Profile: c.profile, Dir: dir, Roots: []string{further}, Servers: []string{"errand", "tracker"}}
		v := p.Route(Request{Tool: c.tool, Input: []byte(c.input)})
		if v.Action != c.want || (v.Reason == "") != (v.Action == Allow) {
			t.Errorf("%s %s %s: %+v, want %s", c.profile, c.tool, c.input, v, c.want)
		}
	}
	blocked := Request{Tool: "Read", Input: []byte(file(dir + "/x")), Blocked: outside + "/x"}
	if v := (Policy{Profile: Write, Dir: dir}).Route(blocked); v.Action != Deny {
		t.Errorf("what the CLI found out about a path does not count: %+v", v)
	}
	// Paths are relative to where the agent starts, and rules to the whole directory.
	sub := filepath.Join(dir, "sub")
	if os.Mkdir(sub, 0o700) != nil || os.Symlink(outside, filepath.Join(sub, "out")) != nil {
		t.Fatal(sub)
	}
	for path, want := range map[string]Action{"x": Allow, "../x": Allow, "../../x": Deny, "out/x": Deny, "y": Deny} {
		rules := []Rule{{Tool: "Write", Input: "sub/y", Action: Deny, Reason: "r"}}
		p := Policy{Profile: Write, Dir: dir, Start: sub, Rules: rules}
		if v := p.Route(Request{Tool: "Write", Input: []byte(file(path))}); v.Action != want {
			t.Errorf("%s from sub: %+v, want %s", path, v, want)
		}
	}
	for _, p := range []Profile{Write, Read, Untrusted} {
		if v := (Policy{Profile: p, Dir: dir}).Route(Request{Tool: "AskUserQuestion", Human: true}); v.Action != Ask {
			t.Errorf("a question to a person: %+v", v)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	dir, outside := linked(t)
	if err := os.Mkdir(filepath.Join(dir, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("secrets", filepath.Join(dir, "public")); err != nil {
		t.Fatal(err)
	}
	clone := t.TempDir()
	for link, to := range map[string]string{filepath.Join(dir, "there"): clone, filepath.Join(clone, "back"): dir} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	command := func(s string) string { return `{"command":"` + s + `"}` }
	deny := func(tool, input string) []Rule { return []Rule{{Tool: tool, Input: input, Action: Deny, Reason: "r"}} }
	allow := func(tool, input string) []Rule { return []Rule{{Tool: tool, Input: input, Action: Allow}} }
	for _, c := range []struct {
		name        string
		rules       []Rule
		profile     Profile
		tool, input string
		want        Action
	}{
		{"by name", deny("Bash", ""), Write, "Bash", command("ls"), Deny},
		{"by neutral name", deny("bash", ""), Write, "Bash", command("ls"), Deny},
		{"by either name of the sub-agents", deny("Task", ""), Write, "Agent", `{}`, Deny},
		{"by any name", deny("*", ""), Write, "Bash", command("ls"), Deny},
		{"another tool", deny("WebFetch", ""), Write, "Bash", command("ls"), Allow},
		{
			"the first one", append(allow("Bash", "git push origin errand/*"), deny("Bash", "git push*")...), Write,
			"Bash", command("git push origin errand/x/y"), Allow,
		},
		{
			"the first one that fits", append(allow("Bash", "git push origin errand/*"), deny("Bash", "git push*")...),
			Write, "Bash", command("git push origin main"), Deny,
		},
		{
			"a command of several lines", deny("Bash", "*git push*"), Write, "Bash", command(`cd x &&\ngit push -f`),
			Deny,
		},
		{"a command as a whole", deny("Bash", "git push"), Write, "Bash", command("git push -f"), Allow},
		{"a URL", deny("WebFetch", "http://*"), Write, "WebFetch", `{"url":"http://x.example/y"}`, Deny},
		{"ask", []Rule{{Tool: "WebSearch", Action: Ask}}, Write, "WebSearch", `{"query":"x"}`, Ask},

		{"below a directory", deny("Read", "secrets/**"), Write, "Read", file(dir + "/secrets/a/b"), Deny},
		{"the directory itself", deny("Grep", "secrets/**"), Write, "Grep", `{"pattern":"x","path":"secrets"}`, Deny},
		{"written with a slash at its end", deny("Read", "./secrets/"), Write, "Read", file("secrets/a"), Deny},
		{"beside it", deny("Read", "secrets/**"), Write, "Read", file(dir + "/secrets.md"), Allow},
		{"by way of a link", deny("Read", "secrets/**"), Write, "Read", file(dir + "/public/a"), Deny},
		{"by the link's own name", deny("Read", "public/**"), Write, "Read", file(dir + "/public/a"), Deny},
		{"written crookedly", deny("Read", "secrets/**"), Write, "Read", file("x/../secrets/./a"), Deny},
		{"a star stops at a slash", deny("Read", "*.key"), Write, "Read", file(dir + "/a/b.key"), Allow},
		{"at any depth", deny("Read", "**/*.key"), Write, "Read", file(dir + "/a/b.key"), Deny},
		{"at no depth", deny("Read", "**/*.key"), Write, "Read", file(dir + "/b.key"), Deny},
		{"between", deny("Read", "a/**/b"), Write, "Read", file("a/b"), Deny},
		{"a pattern of names", deny("Glob", "secrets/**"), Write, "Glob", `{"pattern":"secrets/*"}`, Deny},
		{"a search from the top", deny("Grep", "**"), Write, "Grep", `{"pattern":"x"}`, Deny},
		{
			"some of what is searched", deny("Grep", "secrets/**"), Write, "Grep",
			`{"pattern":"x","path":"docs","glob":"` + dir + `/secrets/*"}`, Deny,
		},

		{"in another clone", deny("Write", "docs/**"), Write, "Write", file(clone + "/docs/x"), Deny},
		{"elsewhere in it", deny("Write", "docs/**"), Write, "Write", file(clone + "/x"), Allow},
		{
			"allowed here with another clone", append(allow("Write", "docs/**"), deny("Write", "")...), Write, "Write",
			file("docs/x"), Allow,
		},
		{"in a directory of both", deny("Write", filepath.Dir(dir)+"/**"), Write, "Write", file("docs/x"), Allow},
		{"the other's path here", deny("Write", clone+"/**"), Write, "Write", file("docs/x"), Allow},
		{"the other's path there", deny("Write", clone+"/**"), Write, "Write", file(clone + "/docs/x"), Deny},
		{"into another clone by way of a link", deny("Write", "docs/**"), Write, "Write", file("there/docs/x"), Deny},
		{
			"out of another clone by way of a link", deny("Write", "docs/**"), Write, "Write",
			file(clone + "/back/docs/x"), Deny,
		},
		{
			"allowed here is not allowed there", append(allow("Write", "docs/**"), deny("Write", "")...), Write,
			"Write", file(clone + "/docs/x"), Deny,
		},

		{"wider than Write", allow("Write", outside+"/**"), Write, "Write", file(outside + "/x"), Allow},
		{"by way of a link, not wider", allow("Write", "link/**"), Write, "Write", file("link/x"), Deny},
		{
			"all of what is searched", allow("Grep", "docs/**"), Write, "Grep",
			`{"pattern":"x","path":"docs","glob":"/etc/*"}`, Deny,
		},
		{"narrower than Read", deny("Read", ""), Read, "Read", file(dir + "/x"), Deny},
		{"Read is never wider: files", allow("Read", ""), Read, "Read", file(outside + "/x"), Deny},
		{"Read is never wider: commands", allow("*", ""), Read, "Bash", command("ls"), Deny},
		{"nor by asking", []Rule{{Tool: "*", Action: Ask}}, Untrusted, "Bash", command("ls"), Deny},
		{
			"nor by servers that it was not given", allow("mcp__tracker__*", ""), Untrusted, "mcp__tracker__find", `{}`,
			Deny,
		},
		{"our own tools", deny("mcp__errand__*", ""), Write, "mcp__errand__ask_user", `{}`, Deny},
		{"the form of the answer", deny("*", ""), Read, "StructuredOutput", `{}`, Allow},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range c.rules {
				if err := r.Validate(); err != nil {
					t.Error(err)
				}
			}
			p := Policy{Profile: c.profile, Dir: dir, Rules: c.rules, Roots: []string{clone}, Clones: []string{clone}}
			if v := p.Route(Request{Tool: c.tool, Input: []byte(c.input)}); v.Action != c.want {
				t.Errorf("%s %s: %+v, want %s", c.tool, c.input, v, c.want)
			}
		})
	}
	human := Request{Tool: "AskUserQuestion", Human: true}
	if v := (Policy{Profile: Write, Dir: dir, Rules: allow("*", "")}).Route(human); v.Action != Ask {
		t.Errorf("a rule answered a question: %+v", v)
	}
	if v := (Policy{Profile: Write, Dir: dir, Rules: deny("*", "")}).Route(human); v.Action != Deny || v.Reason != "r" {
		t.Errorf("a rule did not keep a question back: %+v", v)
	}
}

func TestValidateRule(t *testing.T) {
	t.Parallel()
	run := func(context.Context, Request) (string, error) { return "", nil }
	for _, r := range []Rule{
		{Tool: "Bash", Input: "x*", Action: Deny},
		{Tool: "edit", Action: Ask},
		{Tool: "mcp__x__*", Action: Allow},
		{Tool: "*", Input: "docs/**", Action: Deny},
		{Tool: "WebFetch", Action: Delegate, Run: run},
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for want, r := range map[string]Rule{
		`"" is not the name of a tool`:        {Action: Deny},
		`"Bash(ls *)" is not the name of a`:   {Tool: "Bash(ls *)", Action: Deny},
		`unknown tool "bsh"`:                  {Tool: "bsh", Action: Deny},
		`no input that a pattern`:             {Tool: "mcp__errand__read_thread", Input: "x", Action: Deny},
		`unknown action ""`:                   {Tool: "Bash"},
		`unknown action "permit"`:             {Tool: "Bash", Action: "permit"},
		`action delegate needs a function`:    {Tool: "Bash", Action: Delegate},
		`action deny does not run a function`: {Tool: "Bash", Action: Deny, Run: run},
	} {
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
}

// The profiles that only read use skills, whose files every profile may read and none may change.
func TestPolicyOfSkills(t *testing.T) {
	t.Parallel()
	dir, texts := t.TempDir(), t.TempDir()
	file := filepath.Join(texts, "api/skills/deploy/more.md")
	for _, profile := range []Profile{Write, Read, Untrusted} {
		p := Policy{Profile: profile, Dir: dir, Texts: texts}
		for call, want := range map[string]Action{
			`Skill {"skill":"deploy"}`:           Allow,
			`Read {"file_path":"` + file + `"}`:  Allow,
			`Write {"file_path":"` + file + `"}`: Deny,
			`Edit {"file_path":"` + file + `"}`:  Deny,
		} {
			tool, input, _ := strings.Cut(call, " ")
			if got := p.Route(Request{Tool: tool, Input: json.RawMessage(input)}).Action; got != want {
				t.Errorf("%s, %s: %s", profile, call, got)
			}
		}
	}
}
