// Command review measures what reviews find in small pull requests with a known bug and without, with the second look
// at their findings and without it. The worker is the installed program, the CLI is the real one, and GitHub is a fake.
// The model is a real one if KEY in the environment has a key for it, and otherwise a fake, which shows only that
// everything is counted. Run `make bench-review`, or `go run ./review -h` in bench/ for its flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

func main() {
	table.Main(parse, measure)
}

type options struct {
	Models []string // "" is the CLI's default
	Only   *regexp.Regexp
	Bin    string
	Key    string // of the model; "": the fake
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("review", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: four pull requests")
	flags.StringVar(&o.Bin, "bin", "../bin", "the directory of worker")
	models := flags.String("models", "", "the models, such as sonnet,opus; empty: the CLI's default")
	only := flags.String("only", "", "a pattern of the pull requests' names")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *quick && *only == "" {
		*only = "^(lost-flush|first-page-only|guarded-nil|locked-by-caller)$"
	}
	o.Models, o.Key = strings.Split(*models, ","), os.Getenv("KEY")
	if o.Key == "" {
		o.Models = []string{""}
	}
	o.Only, err = regexp.Compile(*only)
	return o, err
}

// measure reviews the corpus with one model after the other.
func measure(ctx context.Context, o options, progress io.Writer) (*table.Report, error) {
	all, err := readCorpus(corpusText)
	if err != nil {
		return nil, err
	}
	var chosen []pull
	for _, p := range all {
		if o.Only.MatchString(p.name) {
			chosen = append(chosen, p)
		}
	}
	r := &table.Report{}
	r.About(ctx, "%d of %d pull requests of the corpus", len(chosen), len(all))
	for _, model := range o.Models {
		before, after, err := o.review(ctx, model, chosen, progress)
		if err != nil {
			return nil, err
		}
		name := model
		if name == "" {
			name = "the CLI's default model"
		}
		if o.Key == "" {
			name = "FAKE MODEL, which shows only the mechanics"
			wantBefore, wantAfter := expected(chosen)
			if before != wantBefore || after != wantAfter {
				return nil, fmt.Errorf("counted %+v and %+v, but the fake has given %+v and %+v", before, after, wantBefore,
					wantAfter)
			}
		}
		r.Note(name+": precision", before.precision(), "%.0f %%")
		r.Note(name+": recall", before.recall(), "%.0f %%")
		r.Note(name+": precision with the second look", after.precision(), "%.0f %%")
		r.Note(name+": recall with the second look", after.recall(), "%.0f %%")
	}
	return r, nil
}

// review opens the pull requests, each in a repository of its own, and counts what their reviews have found.
func (o options) review(
	ctx context.Context, model string, pulls []pull, progress io.Writer,
) (before, after score, err error) {
	hub, err := githubfake.New(githubfake.Config{})
	if err != nil {
		return before, after, fmt.Errorf("start GitHub: %w", err)
	}
	defer hub.Close()
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		return before, after, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var settings strings.Builder
	settings.WriteString("repositories:\n")
	for _, p := range pulls {
		settings.WriteString("  acme/" + p.name + ": {}\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "errand.yaml"), []byte(settings.String()), 0o600); err != nil {
		return before, after, fmt.Errorf("write settings: %w", err)
	}
	env := []string{
		"ERRAND_CONFIG=" + filepath.Join(dir, "errand.yaml"), "ERRAND_SANDBOX=none", "ANTHROPIC_API_KEY=" + o.Key,
		"GITHUB_API_URL=" + hub.APIURL(), "GITHUB_URL=" + hub.URL(), "GITHUB_TOKEN=ghp_test", "GITHUB_POLL=20s",
		"ERRAND_MODEL=" + model,
	}
	if o.Key == "" {
		fake := modelfake.New()
		defer fake.Close()
		script(fake, pulls)
		env = append(env, "ANTHROPIC_BASE_URL="+fake.URL(), "ANTHROPIC_API_KEY=sk-ant-bench-key")
	}
	worker, err := door.Standalone(ctx, o.Bin, dir, env...)
	if err != nil {
		return before, after, err
	}
	defer func() { err = errors.Join(err, worker.Stop()) }()
	for _, p := range pulls {
		if err := p.open(ctx, hub); err != nil {
			return before, after, err
		}
	}
	for _, p := range pulls {
		summary, err := p.await(ctx, hub)
		if err != nil {
			return before, after, err
		}
		p.add(&before, &after, summary)
		fmt.Fprintf(progress, "== %s: %+v, with the second look %+v\n", p.name, before, after)
	}
	return before, after, nil
}

// open opens a pull request.
func (p pull) open(ctx context.Context, hub *githubfake.Server) error {
	if _, err := hub.CreateRepo("acme", p.name, map[string]string{p.path: p.old}); err != nil {
		return fmt.Errorf("create repository: %w", err)
	}
	_, err := hub.OpenPR(ctx, githubfake.PR{
		Repo: "acme/" + p.name, Base: "main", Head: "change", Title: p.title, User: "acme",
		Files: map[string]string{p.path: p.now},
	})
	if err != nil {
		return fmt.Errorf("open pull request: %w", err)
	}
	return nil
}

// await waits for the summary of a review.
func (p pull) await(ctx context.Context, hub *githubfake.Server) (summary string, err error) {
	err = hub.Wait(ctx, func(s *githubfake.Server) bool {
		for _, c := range s.Comments("acme/"+p.name, 1) {
			if strings.HasPrefix(c.Body, "<!-- errand:review -->") {
				summary = c.Body
			}
		}
		return summary != ""
	})
	if err == nil && !strings.Contains(summary, "**Review of ") {
		err = errors.New(summary)
	}
	if err != nil {
		return "", fmt.Errorf("wait for the review of %s: %w", p.name, err)
	}
	return summary, nil
}
