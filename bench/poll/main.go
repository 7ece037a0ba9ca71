// Command poll measures the time from a comment on GitHub to its answer, where GitHub cannot reach errand and is
// polled. The worker is the installed program, the CLI is the real one, and GitHub and the model are fakes. Run
// `make bench-poll`, or `go run ./poll -h` in bench/ for its flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

func main() {
	table.Main(parse, measure)
}

type options struct {
	Comments, Repositories int
	Pause                  time.Duration // between two comments
	Bin                    string
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{Comments: 40}
	flags := flag.NewFlagSet("poll", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: two comments")
	flags.StringVar(&o.Bin, "bin", "../bin", "the directory of worker")
	flags.IntVar(&o.Repositories, "repositories", 10, "how many repositories are polled")
	flags.DurationVar(&o.Pause, "pause", 3*time.Second, "the time between two comments")
	err := flags.Parse(args)
	if *quick {
		o.Comments = 2
	}
	return o, err
}

// measure comments on one pull request after the other.
func measure(ctx context.Context, o options, progress io.Writer) (_ *table.Report, err error) {
	hub, err := githubfake.New(githubfake.Config{})
	if err != nil {
		return nil, fmt.Errorf("start GitHub: %w", err)
	}
	defer hub.Close()
	model := modelfake.New()
	defer model.Close()
	model.Answer("", modelfake.Turn{Text: "It adds a total."})
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := fill(ctx, hub, dir, o); err != nil {
		return nil, err
	}
	worker, err := door.Standalone(ctx, o.Bin, dir,
		"ERRAND_CONFIG="+filepath.Join(dir, "errand.yaml"), "ERRAND_SANDBOX=none", "ANTHROPIC_BASE_URL="+model.URL(),
		"ANTHROPIC_API_KEY=sk-ant-bench-key",
		"GITHUB_API_URL="+hub.APIURL(), "GITHUB_URL="+hub.URL(), "GITHUB_TOKEN=ghp_test", "GITHUB_POLL=20s")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, worker.Stop()) }()

	r, took := &table.Report{}, make([]time.Duration, o.Comments)
	r.About(ctx, "%d comments on pull requests of %d repositories, GITHUB_POLL=20s", o.Comments, o.Repositories)
	answers := make(chan error, o.Comments)
	for i := range o.Comments {
		if !door.Until(ctx, time.Now().Add(o.Pause)) {
			return nil, context.Cause(ctx)
		}
		fmt.Fprintln(progress, "== comment", i)
		begun := time.Now()
		// one comment on each pull request: a thread has one run at a time
		repo, number := name(i%o.Repositories), 1+i/o.Repositories
		if _, err := hub.Comment(ctx, repo, number, "acme", "@errand what does this change?"); err != nil {
			return nil, fmt.Errorf("comment: %w", err)
		}
		go func() {
			err := hub.Wait(ctx, func(s *githubfake.Server) bool {
				return slices.ContainsFunc(s.Comments(repo, number), func(c githubfake.Comment) bool {
					return strings.Contains(c.Body, "It adds a total.")
				})
			})
			took[i] = time.Since(begun)
			answers <- err
		}()
	}
	for range o.Comments {
		if err := <-answers; err != nil {
			return nil, fmt.Errorf("wait for an answer: %w", err)
		}
	}
	slices.Sort(took)
	all := door.Load{Delays: took}
	r.Note("from a comment to its answer, median", all.Percentile(.5).Seconds(), "%.1f s")
	r.Most("95th percentile", all.Percentile(.95).Seconds(), 60, "%.1f s")
	return r, nil
}

func name(i int) string { return fmt.Sprintf("acme/service-%d", i) }

// fill creates the repositories with a pull request for each comment, and lists them in errand.yaml.
func fill(ctx context.Context, hub *githubfake.Server, dir string, o options) error {
	var settings strings.Builder
	settings.WriteString("repositories:\n")
	for i := range o.Repositories {
		if _, err := hub.CreateRepo("acme", strings.TrimPrefix(name(i), "acme/"),
			map[string]string{"total.go": "package total\n"}); err != nil {
			return fmt.Errorf("create repository: %w", err)
		}
		settings.WriteString("  " + name(i) + ": {}\n")
	}
	for i := range o.Comments {
		_, err := hub.OpenPR(ctx, githubfake.PR{
			Repo: name(i % o.Repositories), Base: "main", Head: fmt.Sprint("total-", i), Title: "Add a total",
			User:  "acme",
			Draft: true, // not reviewed
			Files: map[string]string{"total.go": "package total\n\nvar Total = 1\n"},
		})
		if err != nil {
			return fmt.Errorf("open pull request: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "errand.yaml"), []byte(settings.String()), 0o600); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}
