package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code int
		said string
	}{
		"":                 {2, "Submit tasks to an errand fleet"},
		"help":             {0, "logs        Print or follow the log of a task"},
		"-h":               {0, "ERRAND_HTTP_ADDR       host:port or a URL; default 127.0.0.1:8080"},
		"--help":           {0, "3 failed   4 timed out   5 cancelled   6 refused"},
		"help logs":        {0, "enqueue logs ID [flags]"},
		"help env rebuild": {0, "enqueue env rebuild OWNER/NAME [flags]"},
		"help serve":       {0, "Configure it with environment variables"},
		"help lst":         {2, `unknown command "lst", try list; `},
		"help env rebiuld": {2, `unknown command "rebiuld", try rebuild; `},
		"version":          {0, "enqueue (devel)"},
		"-version":         {0, "enqueue (devel)"},
		"fly":              {2, "enqueue: unknown command \"fly\"; `enqueue --help` says more\n"},
		"lsit":             {2, "try list"},
		"log":              {2, "try login, logout, logs"},
		"serv":             {2, "try serve"},
		"answ":             {2, "try answer"},
		"lst":              {2, "try list"},
		"lisst":            {2, "try list"},
		"guide":            {2, "try init"},
		"serve now":        {2, `enqueue serve: unexpected argument "now"; `},
		"serve -port 1":    {2, "unknown flag: --port"},
		"chat":             {2, "enqueue chat: missing PROMPT; `enqueue chat --help` says more"},
		"chat --follow":    {2, "enqueue chat: missing PROMPT; "},
		"chat -loud hi": {
			2,
			"enqueue chat: unknown flag: --loud (put -- before words that begin with a dash); `enqueue chat --help` says more",
		},
		"chat hi --loud":        {2, "unknown flag: --loud"},
		"chat hi --model":       {2, "flag needs an argument: --model"},
		"chat -h":               {0, "--repo owner/name       work in this repository"},
		"list all":              {2, `enqueue list: unexpected argument "all"; `},
		"show":                  {2, "enqueue show: missing ID; "},
		"show --json id more":   {2, `enqueue show: unexpected argument "more"; `},
		"answer id":             {2, "enqueue answer: missing WORDS; "},
		"cancel a b":            {2, `enqueue cancel: unexpected argument "b"; `},
		"pause":                 {2, "enqueue pause: missing CLASS; "},
		"logs":                  {2, "enqueue logs: missing ID; "},
		"logs ''":               {2, "enqueue logs: missing ID; "},
		"answer id ''":          {2, "enqueue answer: missing WORDS; "},
		"findings":              {2, "enqueue findings: missing --repo OWNER/NAME; "},
		"completion tcsh":       {2, `enqueue completion: unknown command "tcsh", try bash, fish, powershell, zsh; `},
		"completion":            {0, "powershell "},
		"completion bash":       {0, "bash completion"},
		"list --limit ''":       {2, `enqueue list: invalid argument "" for "--limit" flag: it is empty; `},
		"costs --days ''":       {2, `invalid argument "" for "--days" flag: it is empty; `},
		"env rebiuld a/b":       {2, `enqueue env: unknown command "rebiuld", try rebuild; `},
		"env":                   {2, "enqueue env: missing command, such as rebuild; "},
		"env rebuild":           {2, "enqueue env rebuild: missing OWNER/NAME; "},
		"token create":          {2, "enqueue token create: missing NAME; "},
		"token create x":        {2, "enqueue token create: missing --scope ROLE; "},
		"doctor me":             {2, `enqueue doctor: unexpected argument "me"; `},
		"init gitlab":           {2, `enqueue init: unknown command "gitlab", try github; `},
		"costs --json --csv":    {2, "enqueue costs: choose one of --json and --csv; "},
		"audit verify --who me": {2, "unknown flag: --who"},
	} {
		var out, errs strings.Builder
		words := strings.Fields(args)
		if n := len(words) - 1; n > 0 && words[n] == "''" { // as of a variable that is not set
			words[n] = ""
		}
		code := run(t.Context(), words, world{
			getenv: func(name string) string { return map[string]string{"ERRAND_HTTP_ADDR": "127.0.0.1:1"}[name] },
			stdout: &out, stderr: &errs,
		})
		if code != want.code || !strings.Contains(out.String()+errs.String(), want.said) {
			t.Errorf("%q: exit %d: %s%s", args, code, out.String(), errs.String())
		}
		if lines := strings.Count(errs.String(), "\n"); code == 2 && args != "" && lines != 1 {
			t.Errorf("%q: %d lines: %s", args, lines, errs.String())
		}
		if code == 2 && out.Len() > 0 || code == 0 && errs.Len() > 0 {
			t.Errorf("%q: got on stdout %q, on stderr %q", args, out.String(), errs.String())
		}
	}
}

// walk calls visit for a command and those below it.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, below := range c.Commands() {
		walk(below, visit)
	}
}

// Every command has help, and every command that calls the API has an output for programs.
func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	w := world{getenv: func(string) string { return "" }}
	walk(newRoot(newTerminal(w)), func(c *cobra.Command) {
		var out strings.Builder
		w := w
		w.stdout, w.stderr = &out, &out
		words := strings.Fields(c.CommandPath())
		code := run(t.Context(), append([]string{"help"}, words[1:]...), w)
		if code != 0 || !strings.Contains(out.String(), "\nUsage:\n  "+c.CommandPath()) {
			t.Errorf("%s: exit %d: %s", c.CommandPath(), code, out.String())
		}
		top := c
		for top.HasParent() && top.Parent().HasParent() {
			top = top.Parent()
		}
		if calls := top.GroupID == ofTasks.ID || top.GroupID == ofFleet.ID; calls != strings.Contains(out.String(), "  --json") {
			t.Errorf("%s: --json: %v\n%s", c.CommandPath(), !calls, out.String())
		}
	})
}

// A group lists what it is about.
func TestGroupsList(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	for _, name := range []string{"audit", "inbox", "people", "schedules", "token"} {
		code, out, errs := f.run(name)
		wantCode, want, wantErrs := f.run(name, "list")
		if code != 0 || wantCode != 0 || out != want || errs != wantErrs || out+errs == "" {
			t.Errorf("%s: exit %d: %s%s\nlist: exit %d: %s%s", name, code, out, errs, wantCode, want, wantErrs)
		}
	}
}

// Flags can be anywhere before --, and may be written with one dash.
func TestFlagsBehindArguments(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	for _, args := range [][]string{
		{"chat", "Fix", "--model", "opus", "it"},
		{"chat", "--model", "opus", "--", "-x", "is", "-follow"},
		{"chat", "Look", "-model=opus", "--", "-x"},
	} {
		code, out, errs := f.run(args...)
		if code != 0 {
			t.Fatalf("%q: exit %d: %s", args, code, errs)
		}
		got := f.Status(f.whole(strings.TrimSpace(out))).Task
		want := map[string]string{"it": "Fix it", "-follow": "-x is -follow", "-x": "Look -x"}[args[len(args)-1]]
		if got.Options.Model != "opus" || got.Prompt != want {
			t.Errorf("%q asks %s for %q", args, got.Options.Model, got.Prompt)
		}
	}
}

// The value of a flag may begin with a dash.
func TestValueWithADash(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	_, id, _ := f.run("chat", "--", "Run go test -race")
	for _, flag := range []string{"--text", "-text"} {
		if code, out, errs := f.run("list", flag, "-race"); code != 0 || !strings.Contains(out, strings.TrimSpace(id)) {
			t.Errorf("list %s -race: exit %d: %s%s", flag, code, out, errs)
		}
	}
}
