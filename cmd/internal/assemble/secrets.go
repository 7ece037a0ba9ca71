package assemble

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/workspace"
)

// repositorySecrets returns the secrets of repositories, by name in lower case: those of set-ups, or only those that
// the agent gets too.
func repositorySecrets(c config.Config, agent bool) map[string]map[string]string {
	all := map[string]map[string]string{}
	for name, repository := range c.Routing.Repositories {
		values := map[string]string{}
		for variable, s := range repository.Secrets {
			if value := s.Value.Reveal(); value != "" && (!agent || s.Expose == config.ExposeAgent) {
				values[variable] = value
			}
		}
		all[strings.ToLower(name)] = values
	}
	return all
}

// readSecrets reads the secrets of repositories. A program that runs no tasks reads what it can, for its redactor.
func readSecrets(c config.Config, getenv func(string) string, worker bool) (problems config.Problems) {
	run := func(command string) ([]byte, error) {
		return config.RunSecretCommand(context.Background(), command, c.SecretVariables())
	}
	if !worker {
		run = nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Repositories)) {
		repository := c.Routing.Repositories[name]
		if err := repository.ReadSecrets(getenv, os.ReadFile, run); err != nil && worker {
			problems = append(problems, c.Problem("cannot be read: "+err.Error(), "correct them, or set what they name",
				"repositories", name, "secrets"))
		}
		for variable, s := range repository.Secrets {
			if worker && s.Expose == config.ExposeAgent && c.Worker.Sandbox == config.SandboxNone {
				problems = append(problems, c.Problem(
					"is exposed to the agent without a sandbox: the processes of all other runs could read it",
					"set ERRAND_SANDBOX=bwrap, or remove expose", "repositories", name, "secrets", variable))
			}
		}
	}
	return problems
}

// signer returns what signs commits; nil: they are not signed.
func signer(c config.Config) (*workspace.Signer, error) {
	if c.Commits.Key == "" {
		return nil, nil //nolint:nilnil // that is a setting
	}
	return workspace.NewSigner([]byte(c.Commits.Key.Reveal()))
}

// checkSigning reports a key for commits that cannot be used, or that others than the worker could use.
func checkSigning(c config.Config) (problems config.Problems) {
	const name = "ERRAND_SIGNING_KEY"
	if path := c.Commits.KeyFile; path != "" {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.Mode().Perm()&0o077 != 0:
			problems = append(problems, config.Problem{
				Where: name, What: "can be read or changed by other users", Remedy: "run chmod 600 on its file",
			})
		case c.Worker.Sandbox == config.SandboxNone:
			problems = append(problems, config.Problem{
				Where: name, What: "is in a file that agents without a sandbox can read",
				Remedy: "set ERRAND_SANDBOX=bwrap, or set it to the key itself",
			})
		}
	}
	if _, err := signer(c); err != nil {
		problems = append(problems, config.Problem{
			Where: name, What: "cannot be used: " + err.Error(), Remedy: "make one with ssh-keygen -t ed25519 -N ''",
		})
	}
	return problems
}

// Logger returns the configured logger. It writes text to a terminal, for people, and JSON to anything else, for
// programs. It redacts secrets.
func Logger(w io.Writer, c config.Config) *slog.Logger {
	r := redactor(c)
	o := &slog.HandlerOptions{Level: c.Worker.LogLevel, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == logline.TraceKey {
			return a // a hash: looking for secrets in its 32 digits would take as long as the rest of the line
		}
		switch a.Value.Kind() {
		case slog.KindString:
			a.Value = slog.StringValue(r.String(a.Value.String()))
		case slog.KindAny:
			switch v := a.Value.Any().(type) {
			case error:
				a.Value = slog.StringValue(r.String(v.Error()))
			case slog.Level:
				a.Value = slog.StringValue(v.String()) // the handlers' own form; ReplaceAttr would use reflection
			}
		}
		return a
	}}
	if f, isFile := w.(*os.File); isFile && term.IsTerminal(int(f.Fd())) {
		return slog.New(logline.Handler(slog.NewTextHandler(w, o), c.Traces.URL() != ""))
	}
	return slog.New(logline.Handler(slog.NewJSONHandler(w, o), c.Traces.URL() != ""))
}
