package main

import (
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code int
		said string
	}{
		"":              {2, "usage: enqueue COMMAND"},
		"help":          {0, "logs        print or follow the log of a task"},
		"-h":            {0, "usage: enqueue COMMAND"},
		"help logs":     {0, "usage: enqueue logs [-f] ID"},
		"help serve":    {0, "usage: enqueue serve"},
		"help dance":    {2, `unknown command "dance"; ` + "`enqueue help`"},
		"dance":         {2, `unknown command "dance"; ` + "`enqueue help` lists the commands"},
		"lsit":          {2, "did you mean list?"},
		"log":           {2, "did you mean logs?"},
		"serv":          {2, "did you mean serve?"},
		"answ":          {2, "did you mean answer?"},
		"lst":           {2, "did you mean list?"},
		"lisst":         {2, "did you mean list?"},
		"guide":         {2, "did you mean init guide?"},
		"silt":          {2, `unknown command "silt"; `},
		"serve now":     {2, `unexpected argument "now"`},
		"serve -port 1": {2, "unknown flag -port"},
		"serve -h":      {0, "Configure it with environment variables"},
		"chat":          {2, "usage: enqueue chat"},
		"chat -follow":  {2, "usage: enqueue chat"},
		"chat -loud hi": {
			2,
			"enqueue chat: unknown flag -loud (put -- before words that begin with a dash); `enqueue chat -h` lists the flags",
		},
		"chat hi -loud":      {2, "unknown flag -loud"},
		"chat hi -model":     {2, "flag needs an argument: -model"},
		"chat -h":            {0, "  -repo owner/name      work in this repository"},
		"list all":           {2, "usage: enqueue list"},
		"show":               {2, "usage: enqueue show ID"},
		"cancel a b":         {2, "usage: enqueue cancel ID"},
		"logs":               {2, "usage: enqueue logs"},
		"env":                {2, "usage: enqueue env list | show OWNER/NAME | rebuild OWNER/NAME | rm KEY"},
		"doctor me":          {2, "usage: enqueue doctor [-repo o/r]\n"},
		"init gitlab":        {2, "usage: enqueue init [guide | slack | github]"},
		"show -json id more": {2, "usage: enqueue show ID"},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), strings.Fields(args), world{
			getenv: func(string) string { return "" }, stdout: &out, stderr: &errs,
		})
		if code != want.code || !strings.Contains(out.String()+errs.String(), want.said) {
			t.Errorf("%q: exit %d: %s%s", args, code, out.String(), errs.String())
		}
		if code == 2 && out.Len() > 0 || code == 0 && errs.Len() > 0 {
			t.Errorf("%q: got on stdout %q, on stderr %q", args, out.String(), errs.String())
		}
	}
}

// Every command prints its usage and has an output for programs.
func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		var out strings.Builder
		code := run(t.Context(), []string{"help", c.name}, world{
			getenv: func(string) string { return "" }, stdout: &out, stderr: &out,
		})
		empty := strings.HasSuffix(out.String(), "\nflags:\n")
		if code != 0 || !strings.HasPrefix(out.String(), "usage: enqueue "+c.name) || empty {
			t.Errorf("exit %d: %s", code, out.String())
		}
		if !c.offline && !strings.Contains(out.String(), "  -json") {
			t.Errorf("%s has no -json for programs:\n%s", c.name, out.String())
		}
	}
}

// Flags can be anywhere before --.
func TestFlagsBehindArguments(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	for _, args := range [][]string{
		{"chat", "Fix", "-model", "opus", "it"},
		{"chat", "-model", "opus", "--", "-x", "is", "-follow"},
		{"chat", "Look", "-model=opus", "--", "-x"},
	} {
		code, out, errs := f.run(args...)
		if code != 0 {
			t.Fatalf("%q: exit %d: %s", args, code, errs)
		}
		got := f.Status(strings.TrimSpace(out)).Task
		want := map[string]string{"it": "Fix it", "-follow": "-x is -follow", "-x": "Look -x"}[args[len(args)-1]]
		if got.Options.Model != "opus" || got.Prompt != want {
			t.Errorf("%q asks %s for %q", args, got.Options.Model, got.Prompt)
		}
	}
}
