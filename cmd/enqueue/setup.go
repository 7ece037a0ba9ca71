package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks/slack/app"
)

// initCommand writes configuration files or prints a manifest to stdout and instructions to stderr. Only guide and
// --create make network requests.
func initCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{
		Use: "init", Short: "Write .env and errand.yaml, or set up a service",
		SuggestFor: []string{"guide", "slack", "github"},
	}
	var o guideOptions
	flags := c.PersistentFlags()
	flags.StringVar(&o.dir, "dir", ".", "write the files into this `directory`")
	flags.StringVar(&o.name, "name", "errand",
		"the app's `name`, which is also its mention; it must be unique on GitHub")
	flags.StringVar(&o.base, "url", t.getenv("ERRAND_PUBLIC_URL"),
		"the front door's public `URL`; without it Slack uses Socket Mode, and GitHub is polled")
	flags.StringVar(&o.org, "org", "", "the `organisation` that owns the GitHub App")
	flags.StringVar(&o.address, "listen", "127.0.0.1:0", "the `address` for the browser, with guide and --create")
	c.RunE = func(*cobra.Command, []string) error {
		if err := t.initFiles(o.dir); err != nil {
			return err
		}
		printText(t.stderr, "init", map[string]string{
			"File": filepath.Join(o.dir, ".env"), "Begin": beginCommand(o.dir),
		})
		return nil
	}
	guide := &cobra.Command{Use: "guide", Short: "Set errand up step by step"}
	guide.Flags().BoolVar(&o.noGitHub, "no-github", false, "leave out GitHub")
	guide.Flags().BoolVar(&o.noStart, "no-start", false, "do not start errand, but wait for it")
	guide.RunE = func(c *cobra.Command, _ []string) error { return t.runGuide(c.Context(), o) }
	slack := &cobra.Command{Use: "slack", Short: "Print the manifest of a Slack app"}
	slack.RunE = func(*cobra.Command, []string) error { return t.initSlack(o.name, o.base) }
	github := &cobra.Command{Use: "github", Short: "Print the manifest of a GitHub App, or create one"}
	createApp := github.Flags().Bool("create", false,
		"create the GitHub App with a browser, and write its ID, key and secret into --dir")
	github.RunE = func(c *cobra.Command, _ []string) error {
		if *createApp {
			return t.createApp(c.Context(), o)
		}
		return t.initGitHub(o.name, o.base, o.org)
	}
	c.AddCommand(guide, slack, github)
	return c
}

func (t *terminal) createApp(ctx context.Context, o guideOptions) error {
	flow, err := t.newAppCreation(github.App{Name: o.name, Base: o.base}, t.appPage(o.org), o.dir)
	if err != nil {
		return err
	}
	created, err := flow.run(ctx, o.address, "init github create")
	if err != nil {
		return err
	}
	printText(t.stderr, "init github created", map[string]string{
		"Name": created.Name, "Install": installPage(created), "File": flow.env, "URL": o.base,
	})
	return nil
}

// initFiles writes .env and errand.yaml.
func (t *terminal) initFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // its files have their own modes
		return fmt.Errorf("create directory: %w", err)
	}
	for _, f := range []struct {
		name, text, about string
		mode              fs.FileMode
	}{
		{".env", dotEnv(), "settings and secrets, including the console's token", 0o600},
		{"errand.yaml", routing(), "repositories, channels, people, limits", 0o644},
	} {
		path := filepath.Join(dir, f.name)
		switch err := create(path, f.text, f.mode); {
		case errors.Is(err, fs.ErrExist):
			printf(t.stdout, "kept   %s, which exists\n", path)
		case err != nil:
			return err
		default:
			printf(t.stdout, "wrote  %s: %s\n", path, f.about)
		}
	}
	return nil
}

// beginCommand returns the shell command with which errand's programs find the settings in a directory.
func beginCommand(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // another terminal is elsewhere
	}
	return "cd '" + strings.ReplaceAll(dir, "'", `'\''`) + "'; set -a; . ./.env; set +a" // for errand.yaml
}

// program returns how a shell on this machine calls one of errand's programs: by its name or, if that is not on PATH,
// by its path beside this program.
func program(name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	path := filepath.Join(filepath.Dir(self), name)
	beside, err := os.Stat(path)
	if err != nil {
		return name
	}
	if found, err := exec.LookPath(name); err == nil {
		if info, err := os.Stat(found); err == nil && os.SameFile(info, beside) {
			return name
		}
	}
	return path
}

// create writes a new file. It fails if the path exists, also as a symbolic link, and leaves no partial file.
func create(path, text string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// dotEnv returns the example with generated values for the secrets that errand itself checks.
func dotEnv() string {
	text := config.EnvFile()
	for _, name := range []string{"ERRAND_CONSOLE_TOKEN", "REDIS_PASSWORD"} {
		text = strings.Replace(text, "\n# "+name+"=\n", "\n"+name+"="+rand.Text()+"\n", 1)
	}
	return text
}

// routing returns the example with every setting commented out. Settings get a #, comments begin with # and a blank.
func routing() string {
	var b strings.Builder
	b.WriteString("# Nothing is set yet. To use a setting, remove the # at the beginning of its lines.\n#\n")
	for line := range strings.Lines(config.Example) {
		if strings.TrimSpace(line) != "" && line[0] != '#' {
			b.WriteString("#")
		}
		b.WriteString(line)
	}
	return b.String()
}

func (t *terminal) initGitHub(name, base, org string) error {
	app := github.App{Name: name, Base: base}
	manifest, err := app.Manifest()
	if err != nil {
		return usageError{fmt.Errorf("make manifest: %w", err)}
	}
	form, err := app.Form()
	if err != nil {
		return fmt.Errorf("make form: %w", err)
	}
	printf(t.stdout, "%s", manifest)
	printText(t.stderr, "init github", map[string]string{
		"URL": base, "Page": t.appPage(org) + "/settings/apps/new?" + form.Encode(),
	})
	return nil
}

func (t *terminal) initSlack(name, base string) error {
	manifest, err := app.Manifest(name, base)
	if err != nil {
		return usageError{fmt.Errorf("make manifest: %w", err)}
	}
	printf(t.stdout, "%s", manifest)
	printText(t.stderr, "init slack", map[string]string{"URL": base, "Name": name})
	return nil
}

// haltCommand returns a command that lets workers take no tasks, or take them again.
func haltCommand(t *terminal, use, about string) *cobra.Command {
	action, name, _ := strings.Cut(use, " ")
	path := "POST /api/fleet/workers/%s/" + action
	if name == "CLASS" {
		path = "POST /api/fleet/classes/%s/" + action
	}
	c := t.action(use, about, path, func(r row) string {
		halt, halted := r["halt"].(map[string]any)
		if !halted {
			return "workers take tasks again: " + r.text("name")
		}
		return r.text("name") + ": workers take no tasks since " + row(halt).minute("since") + ", by " +
			cmp.Or(row(halt).text("by"), "an operator")
	})
	if name == "CLASS" {
		c.ValidArgs = []string{"interactive", "review", "background", "maintenance"}
	}
	return c
}

// fleetHealth is the response of GET /api/health.
type fleetHealth struct {
	Problem, Redis string
	Checks         []finding
	Tasks          struct{ Running, Waiting, Held int }
	Pools          []struct {
		Name                             string
		Workers, Slots, Running, Waiting int
	}
	Workers []struct {
		ID, Version    string
		Pool           string
		Slots, Running int
		Checks         []finding
	}
}

// doctorCommand asks the front door, because Redis need not be reachable from the user's machine.
func doctorCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "Check whether the fleet works, or what a run in a repository would get",
		Annotations: map[string]string{"json": "the API's JSON about Redis and the workers, or about the repository"},
	}
	repo := c.Flags().String("repo", "", "say what a run in the repository `owner/name` would get, and what is missing")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		if *repo != "" {
			return t.outlook(ctx, *repo)
		}
		text, f, err := t.api.health(ctx)
		if err != nil {
			return err
		}
		var services struct{ Findings []finding }
		if _, err := t.api.call(ctx, "GET /api/health/services", nil, &services); err != nil {
			f := finding{
				Severity: "error", What: "cannot check Slack, GitHub and the model", Why: err.Error(),
				Remedy: "Check the front door's log.",
			}
			if refused, ok := errors.AsType[*apiError](err); ok && refused.status == http.StatusForbidden {
				f.Severity, f.Remedy = "note", "Have an operator of all repositories run `enqueue doctor`."
			}
			services.Findings = []finding{f}
		}
		answers := finding{What: "the front door answers at " + t.api.base}
		findings := f.findings(slices.Concat([]finding{answers}, f.Checks, services.Findings))
		if t.raw {
			err = t.printJSON(text)
		} else {
			t.printHealth(f, findings)
			t.printTally(findings)
		}
		if err == nil && failed(findings) {
			return exitFailed
		}
		return err
	}
	return c
}

// outlook is the response of GET /api/health/repository.
type outlook struct {
	Facts []struct {
		Name   string
		Values []string
	}
	Findings []finding
}

// outlook prints what a run in a repository would get.
func (t *terminal) outlook(ctx context.Context, repo string) error {
	o, err := shown(ctx, t, "GET /api/health/repository?repo="+url.QueryEscape(repo), nil, func(o outlook) {
		for _, f := range o.Facts {
			name := f.Name
			for _, value := range append(f.Values, "–")[:max(1, len(f.Values))] {
				printf(t.stdout, "%-24s %s\n", display.Line(name), display.Line(value))
				name = ""
			}
		}
		printf(t.stdout, "\n")
		t.printFindings(o.Findings)
	})
	if err == nil && failed(o.Findings) {
		return exitFailed
	}
	return err
}

// failed reports whether a finding is an error.
func failed(list []finding) bool {
	return slices.ContainsFunc(list, func(f finding) bool { return f.Severity == "error" })
}

// health returns the fleet's health. The status 503 means unhealthy and has the same body.
func (c *apiClient) health(ctx context.Context) (text []byte, f fleetHealth, err error) {
	text, err = c.call(ctx, "GET /api/health", nil, &f)
	if e, ok := errors.AsType[*apiError](err); ok && e.status == http.StatusServiceUnavailable &&
		json.Unmarshal(e.body, &f) == nil {
		text, err = e.body, nil
	}
	if err == nil && f.Redis == "" {
		err = fmt.Errorf("%s answered without health: is this errand?", c.base)
	}
	return text, f, err
}

// severities are those of findings, the worst first. A check that passed has none, or the last.
var severities = []string{"error", "warning", "note", "ok"}

// maxNamed is how many workers a finding names. Of more it says the number.
const maxNamed = 4

// findings returns findings about the whole fleet and those about workers, the worst first and each once. One about
// workers names up to maxNamed of them.
func (f fleetHealth) findings(all []finding) []finding {
	of := map[finding][]string{} // the workers; none for the fleet
	var list []finding
	add := func(c finding, worker ...string) {
		c.Severity = cmp.Or(c.Severity, "ok")
		if workers, known := of[c]; !known {
			list, of[c] = append(list, c), worker
		} else if len(workers) > 0 {
			of[c] = append(workers, worker...)
		}
	}
	for _, c := range all {
		add(c)
	}
	for _, w := range f.Workers {
		for _, c := range w.Checks {
			add(c, w.ID)
		}
	}
	for i, c := range list {
		switch workers := of[c]; {
		case len(workers) > maxNamed:
			list[i].What = fmt.Sprintf("%d workers: %s", len(workers), c.What)
		case len(workers) > 0:
			list[i].What = strings.Join(workers, ", ") + ": " + c.What
		}
	}
	slices.SortStableFunc(list, func(a, b finding) int {
		return cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity))
	})
	return list
}

// printHealth prints findings, the workers, and how many tasks there are.
func (t *terminal) printHealth(f fleetHealth, findings []finding) {
	t.printFindings(findings)
	printf(t.stdout, "\n")
	for _, w := range f.Workers {
		member := ""
		if w.Pool != "" {
			member = ", pool " + display.Line(w.Pool)
		}
		printf(t.stdout, "worker %s, version %s%s, %d of %d slots in use\n", display.Line(w.ID),
			display.Line(cmp.Or(w.Version, "unknown")), member, w.Running, w.Slots)
	}
	if f.Redis != "ok" {
		return
	}
	words := fmt.Sprintf("tasks: %d running, %d waiting", f.Tasks.Running, f.Tasks.Waiting)
	if f.Tasks.Held > 0 {
		words += fmt.Sprintf(", %d of them until a set time", f.Tasks.Held)
	}
	printf(t.stdout, "%s\n", words)
	for _, p := range f.Pools {
		if len(f.Pools) > 1 {
			printf(t.stdout, "pool %s: workers %d, slots in use %d of %d, tasks waiting %d\n", display.Line(p.Name),
				p.Workers, p.Running, p.Slots, p.Waiting)
		}
	}
}

// printTally counts findings by severity.
func (t *terminal) printTally(findings []finding) {
	count := map[string]int{}
	for _, c := range findings {
		count[c.Severity]++
	}
	printf(t.stdout, "checks: error %d, warning %d, note %d, ok %d\n", count["error"], count["warning"], count["note"],
		count["ok"])
}

// printFindings prints findings. A check that passed has no severity.
func (t *terminal) printFindings(list []finding) {
	for _, f := range list {
		severity := cmp.Or(f.Severity, "ok")
		style := map[string]term.Style{
			"ok": term.Green, "note": term.Cyan, "warning": term.Yellow, "error": term.Red,
		}[severity]
		printf(t.stdout, "%s %s\n", t.stdout.Paint(style, fmt.Sprintf("%-8s", severity)),
			display.Line(f.What))
		for _, line := range []string{f.Why, f.Remedy} {
			if line != "" {
				printf(t.stdout, "%-8s   %s\n", "", display.Line(line))
			}
		}
	}
}
