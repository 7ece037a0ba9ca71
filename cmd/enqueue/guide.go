package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/joho/godotenv"
	"go.yaml.in/yaml/v3"

	"github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/slack/app"
)

// guide sets errand up step by step, with questions in the terminal. Each step writes its settings at
// once, and is skipped if they exist: after an interruption, the guide goes on where it was.
type guide struct {
	*terminal
	guideOptions
	env          map[string]string // the variables of .env
	app          string            // name of the GitHub App, which the person may have changed
	install      string            // page on which it is installed; empty if the App existed before
	repositories []string          // on which the GitHub App is installed

	ended chan struct{}        // closed when the errand ends that the guide has started; nil: it has started none
	fault error                // set before, if it has failed, or ended although nothing has told it to
	told  atomic.Pointer[exit] // the exit code for what has told it to end; nil: nothing has
}

type guideOptions struct {
	name, base, org, dir, address string
	noGitHub, noStart             bool
}

// runGuide runs the guide until the first task has ended.
func (t *terminal) runGuide(ctx context.Context, o guideOptions) (err error) {
	if _, err := app.Manifest(o.name, o.base); err != nil {
		return usageError{err}
	}
	if err := t.initFiles(o.dir); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &guide{terminal: t, guideOptions: o}
	defer func() {
		cancel()
		if g.ended != nil {
			<-g.ended
		}
	}()
	if o.base != "" {
		if err := g.set("ERRAND_PUBLIC_URL", o.base); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{
		g.setToken, g.setUpModel, g.setUpGitHub, g.setUpSlack, g.awaitStart, g.awaitTask,
	} {
		if g.env, err = godotenv.Read(filepath.Join(o.dir, ".env")); err != nil {
			return fmt.Errorf("read .env: %w", err)
		}
		if public := g.env["ERRAND_PUBLIC_URL"]; strings.HasPrefix(public, "https://") {
			g.base = public
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// set writes variables to .env.
func (g *guide) set(name, value string) error {
	return setVariables(filepath.Join(g.dir, ".env"), [][2]string{{name, value}})
}

// setToken chooses a token if there is none, as in a copy of .env.example. errand would choose one that the guide does
// not know.
func (g *guide) setToken(context.Context) error {
	if cmp.Or(g.env[tokenName], g.getenv(tokenName)) != "" {
		return nil
	}
	return g.set(tokenName, rand.Text())
}

// setUpModel asks for a credential, and tries it before it writes it.
func (g *guide) setUpModel(ctx context.Context) error {
	for name := range g.env {
		if strings.HasPrefix(name, "ANTHROPIC_") || strings.HasPrefix(name, "CLAUDE_CODE_") ||
			name == "ERRAND_MODEL_TOKEN_COMMAND" {
			return nil
		}
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"} {
		key := g.getenv(name)
		if key == "" {
			continue
		}
		printf(g.stderr, "\nThe model: %s of your environment\n", name)
		err := g.useKey(ctx, key)
		if err == nil || ctx.Err() != nil {
			return err
		}
		g.refuse(err)
	}
	printText(g.stderr, "guide model", nil)
	return g.ask(ctx, []field{{"Key or token", true}}, func(answers []string) error {
		if answers[0] == "" {
			printText(g.stderr, "guide no model", nil)
			return nil
		}
		return g.useKey(ctx, answers[0])
	})
}

// useKey tries a credential, and writes it with the address at which it was tried.
func (g *guide) useKey(ctx context.Context, key string) error {
	name, header, value := "ANTHROPIC_API_KEY", "X-Api-Key", key
	if strings.HasPrefix(key, "sk-ant-oat") {
		name, header, value = "CLAUDE_CODE_OAUTH_TOKEN", "Authorization", "Bearer "+key
	}
	if err := g.tryModel(ctx, header, value); err != nil {
		return err
	}
	written := [][2]string{{name, key}}
	if address := g.getenv("ANTHROPIC_BASE_URL"); address != "" {
		written = append(written, [2]string{"ANTHROPIC_BASE_URL", address})
	}
	return setVariables(filepath.Join(g.dir, ".env"), written)
}

// tryModel asks the model's API to count a token, which costs nothing. Only a refused credential is an error of the
// person: which models there are is known later.
func (g *guide) tryModel(ctx context.Context, header, value string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	address := strings.TrimRight(cmp.Or(g.getenv("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"), "/") +
		"/v1/messages/count_tokens"
	body := `{"model":"claude-haiku-4-5","messages":[{"role":"user","content":"Hello"}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("try the credential: %w", err)
	}
	for name, v := range map[string]string{
		"Content-Type": "application/json", "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "oauth-2025-04-20",
		header: value,
	} {
		req.Header.Set(name, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("try the credential: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		printText(g.stderr, "guide model tried", resp)
		return nil
	}
	var said struct {
		Error struct{ Message string } `json:"error"`
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	_ = json.Unmarshal(text, &said)
	return fmt.Errorf("the model's API refuses the credential: %s", cmp.Or(said.Error.Message, resp.Status))
}

// setUpGitHub creates an App, and waits until it is installed.
func (g *guide) setUpGitHub(ctx context.Context) error {
	if g.env["GITHUB_TOKEN"] != "" || g.noGitHub {
		return nil
	}
	if g.env["GITHUB_APP_ID"] == "" {
		c, err := g.newAppCreation(github.App{Name: g.name, Base: g.base}, g.appPage(g.org), g.dir)
		if err != nil {
			return err
		}
		created, err := c.run(ctx, g.address, "guide github")
		if err != nil {
			return err
		}
		g.install = installPage(created)
		if g.env, err = godotenv.Read(c.env); err != nil {
			return fmt.Errorf("read .env: %w", err)
		}
	}
	return g.awaitInstallation(ctx)
}

// awaitInstallation lists the repositories on which the App is installed in errand.yaml.
func (g *guide) awaitInstallation(ctx context.Context) error {
	key := []byte(strings.ReplaceAll(g.env["GITHUB_APP_PRIVATE_KEY"], `\n`, "\n"))
	if file := string(key); filepath.IsAbs(file) {
		var err error
		if key, err = os.ReadFile(file); err != nil {
			return fmt.Errorf("read the App's key: %w", err)
		}
	}
	id, _ := strconv.ParseInt(g.env["GITHUB_APP_ID"], 10, 64)
	forge, err := github.New(github.Config{APIURL: g.githubAPI(), URL: g.githubURL(), AppID: id, AppKey: key})
	if err != nil {
		return err
	}
	login, err := forge.Login(ctx)
	if err != nil {
		return err
	}
	g.app = strings.TrimSuffix(login, "[bot]")
	printText(g.stderr, "guide github install", map[string]string{"App": g.app, "URL": g.install})
	err = g.await(ctx, func() (bool, error) {
		g.repositories, err = forge.Installed(ctx)
		return len(g.repositories) > 0, err
	})
	if err != nil {
		return err
	}
	listed := map[string]struct{}{}
	for _, repo := range g.repositories {
		listed[repo] = struct{}{}
	}
	return g.configure("repositories", listed)
}

// configure adds a section to errand.yaml, unless it has one.
func (g *guide) configure(section string, value any) error {
	path := g.settingsFile()
	text, exists, err := g.settings(section)
	if err != nil {
		return err
	}
	added, err := yaml.Marshal(map[string]any{section: value})
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if exists {
		printText(g.stderr, "guide kept", map[string]string{"File": path, "Section": section})
		return nil
	}
	text = bytes.Join([][]byte{bytes.TrimRight(text, "\n"), added}, []byte("\n\n"))
	if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // has no secrets
		return fmt.Errorf("write settings: %w", err)
	}
	printText(g.stderr, "guide added", map[string]string{"File": path, "Added": strings.TrimSpace(string(added))})
	return nil
}

func (g *guide) settingsFile() string { return filepath.Join(g.dir, "errand.yaml") }

// settings returns the text of errand.yaml, and whether it has a section.
func (g *guide) settings(section string) (text []byte, exists bool, err error) {
	text, err = os.ReadFile(g.settingsFile())
	if err != nil {
		return nil, false, fmt.Errorf("read settings: %w", err)
	}
	var present map[string]any
	if err := yaml.Unmarshal(text, &present); err != nil {
		return nil, false, fmt.Errorf("read settings: %s: %w", g.settingsFile(), err)
	}
	_, exists = present[section]
	return text, exists, nil
}
