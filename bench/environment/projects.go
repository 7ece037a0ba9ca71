package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// stranger is a repository whose .github/errand.yml is an example of docs/repository.md.
type stranger struct {
	name    string
	files   map[string]string
	test    string         // the command that runs its tests
	passed  *regexp.Regexp // what that prints, once for each test or package
	env     map[string]string
	private []string // hosts that have private addresses
	login   bool     // it needs packages of the private registry
}

// projects measures what the set-up of four kinds of projects costs their first task and the next ones. Through a new
// worker and the real CLI, a task runs the tests of the project. It needs the programs and registries, so a smoke run
// leaves it out.
func (b *bench) projects(ctx context.Context) error {
	if b.Quick {
		return nil
	}
	document, err := os.ReadFile(b.Docs)
	if err != nil {
		return fmt.Errorf("read the examples: %w", err)
	}
	for _, kind := range []struct {
		example string
		make    func(context.Context, *corp) (stranger, error)
	}{{"Go", b.goModule}, {"Python", b.pythonPackage}, {"Node.js", b.nodeProject}, {"Java", b.javaProject}} {
		c, err := newCorp()
		if err != nil {
			return err
		}
		p, err := kind.make(ctx, c)
		if err == nil {
			p.name = kind.example
			p.files[".github/errand.yml"], err = example(string(document), kind.example)
		}
		if err == nil {
			err = b.project(ctx, p, c)
		}
		c.close()
		if err != nil {
			return fmt.Errorf("%s: %w", kind.example, err)
		}
	}
	return nil
}

// example returns the example of the document for a language.
func example(document, language string) (string, error) {
	_, examples, _ := strings.Cut(document, "\n## Examples\n")
	_, found, ok := strings.Cut(examples, "\n"+language)
	if _, found, _ = strings.Cut(found, "```yaml\n"); found != "" && ok {
		text, _, _ := strings.Cut(found, "```")
		return text, nil
	}
	return "", fmt.Errorf("the document has no example for %s", language)
}

// The two repositories of a project. The second is the same without .github/errand.yml.
const strangerRepo, plainRepo = "acme/stranger", "acme/plain"

// create creates the repositories of the project.
func (p stranger) create(github *githubfake.Server) error {
	if _, err := github.CreateRepo("acme", "stranger", p.files); err != nil {
		return fmt.Errorf("create repository: %w", err)
	}
	plain := map[string]string{}
	for name, text := range p.files {
		if name != ".github/errand.yml" {
			plain[name] = text
		}
	}
	if _, err := github.CreateRepo("acme", "plain", plain); err != nil {
		return fmt.Errorf("create repository: %w", err)
	}
	return nil
}

// settings returns errand.yaml.
func (p stranger) settings(c *corp) map[string]any {
	env := map[string]any{"CONTROL": control}
	for name, value := range p.env {
		env[name] = value
	}
	repository := map[string]any{"env": env}
	if len(p.private) > 0 {
		repository["egress"] = map[string]any{"allow": []string{"npm"}, "private": p.private}
	}
	all := map[string]any{"repositories": map[string]any{strangerRepo: repository, plainRepo: map[string]any{}}}
	if p.login {
		all["registries"] = []map[string]any{{
			"host": c.address(), "basic": `{{env "REGISTRY_LOGIN"}}`, "repositories": []string{strangerRepo},
		}}
	}
	return all
}

// project measures one of them.
func (b *bench) project(ctx context.Context, p stranger, c *corp) (err error) {
	w, err := b.newWorld(ctx, p, c)
	defer func() { err = errors.Join(err, w.stop()) }()
	if err != nil {
		return err
	}
	if _, err := w.ask(ctx, plainRepo, "say hello"); err != nil { // the first start of the CLI costs more
		return err
	}
	first, err := b.runTests(ctx, w, p)
	if err != nil {
		return err
	}
	var plain, again []time.Duration
	for range b.Readings {
		without, err := w.ask(ctx, plainRepo, "say hello")
		if err != nil {
			return err
		}
		with, err := b.runTests(ctx, w, p)
		if err != nil {
			return err
		}
		plain, again = append(plain, without), append(again, with)
	}
	base := table.Median(plain)
	cost := (first - base).Seconds()
	b.report.Note(p.name+": the first task waited for its set-up", cost, "%.1f s")
	b.report.Most("the next one, as a part of it", max(0, (table.Median(again)-base).Seconds())/cost, 0.05, "%.3f")
	if !p.login {
		return nil
	}
	b.report.Least("requests with the credential at its registry", float64(c.served.Load()), 1, "%.0f")
	known, err := w.search(control)
	if err != nil {
		return err
	}
	b.report.Least("a variable that is no secret is found by the search for secrets", float64(known), 2, "%.0f")
	found, err := w.search(login)
	b.report.Most("credentials in runs, homes, clones and logs", float64(found), 0, "%.0f")
	return err
}

// control is a plain variable of the runs in the form of a login. The search for the login must find this one: in
// errand.yaml and in the environment that the model was told.
const control = "reader:control-of-the-search"

// runTests lets a task run the tests, which must pass, and returns how long it took until the model was called.
func (b *bench) runTests(ctx context.Context, w *world, p stranger) (time.Duration, error) {
	took, err := w.ask(ctx, strangerRepo, "run the tests")
	if err != nil {
		return 0, err
	}
	if printed := w.results(); !p.passed.MatchString(printed) || !strings.Contains(printed, "\nHOME=") {
		return 0, fmt.Errorf("the tests did not pass: %s", printed)
	}
	return took, nil
}

// search counts the files of the worker and the model's requests, which have the environment of the runs, that contain
// the password of a login or the base64 of the login.
func (w *world) search(secret string) (found int, err error) {
	_, password, _ := strings.Cut(secret, ":")
	forms := [][]byte{[]byte(password), []byte(base64.StdEncoding.EncodeToString([]byte(secret)))}
	leaked := func(data []byte) {
		for _, form := range forms {
			if bytes.Contains(data, form) {
				found++
			}
		}
	}
	for _, r := range w.model.Requests() {
		leaked(r.Body)
	}
	err = filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path) //nolint:gosec // nothing else runs
		leaked(data)
		return err
	})
	if err != nil {
		return found, fmt.Errorf("search for the credential: %w", err)
	}
	return found, nil
}
