package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"
)

// RepositorySecret says where the value of a variable is, and who gets it. A worker reads it when it starts.
type RepositorySecret struct {
	// From is "env:NAME" for a variable of the worker, "file:/path" for the content of a file, or "command:PROGRAM
	// ARGUMENT…" for what a program prints.
	From   string `yaml:"from" help:"Where the value is: env:NAME of the worker, file:/path, or command:PROGRAM ARGUMENTS. It may stand alone."`
	Expose string `yaml:"expose" help:"With agent, runs and checks get it too, and not only the set-up."`

	Value Secret `yaml:"-"` // empty: it was not read
}

// ExposeAgent is the value of RepositorySecret.Expose that gives the secret to the agent.
const ExposeAgent = "agent"

var secretSource = regexp.MustCompile(`^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+|command:\s*\S.*)$`)

// UnmarshalYAML reads the text of From alone, or a mapping.
func (s *RepositorySecret) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&s.From)
	}
	type plain RepositorySecret
	return n.Decode((*plain)(s))
}

// SecretFiles returns the files that Secrets names.
func (r Repository) SecretFiles() (files []string) {
	for _, s := range r.Secrets {
		if file, ok := strings.CutPrefix(s.From, "file:"); ok {
			files = append(files, file)
		}
	}
	return files
}

// ReadSecrets sets the values of Secrets. The error names all that cannot be read, and shows no value. run returns what
// the program of a command prints; nil: commands are left out.
func (r Repository) ReadSecrets(
	getenv func(string) string, readFile readFunc, run func(command string) ([]byte, error),
) (wrong error) {
	for _, name := range slices.Sorted(maps.Keys(r.Secrets)) {
		s := r.Secrets[name]
		kind, from, _ := strings.Cut(s.From, ":")
		var data []byte
		var err error
		switch {
		case kind == "env":
			data = []byte(getenv(from))
		case kind == "command" && run == nil:
			continue
		case kind == "command":
			data, err = run(from)
		default:
			data, err = readFile(from)
		}
		if data = bytes.TrimSpace(data); err == nil && len(data) == 0 {
			err = fmt.Errorf("%s gives no text", s.From)
		}
		s.Value = Secret(data)
		if err != nil {
			wrong, s.Value = errors.Join(wrong, fmt.Errorf("read secret %s: %w", name, err)), ""
		}
		r.Secrets[name] = s
	}
	return wrong
}

// Bounds of a command that prints a secret. It may have to ask a service.
const (
	secretCommandLimit = 30 * time.Second
	maxSecret          = 64 << 10 // bytes
)

// readVariable finds the variables that errand.yaml reads.
var readVariable = regexp.MustCompile(`\{\{-?\s*env\s+\\?["` + "`" + `](\w+)|\benv:(\w+)`)

// SecretVariables returns the variables with errand's own secrets: those of settings and of errand.yaml. It leaves out
// those that programs of the clouds read.
func (c *Config) SecretVariables() []string {
	names := slices.Clone(c.Routing.Variables)
	for _, s := range c.settings() {
		switch s.value.(type) {
		case Secret, RedisURL:
			if !slices.Contains([]string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET"}, s.name) {
				names = append(names, s.name)
			}
		}
	}
	return names
}

// RunSecretCommand runs a program with arguments between spaces, without a shell, and returns what it prints. The
// program does not get the hidden variables: tools without a sandbox can read its environment. No process of it
// outlives the call, which ends with ctx. Errors do not quote the output, which may contain the secret.
func RunSecretCommand(ctx context.Context, command string, hidden []string) ([]byte, error) {
	tooSlow := fmt.Errorf("it did not end within %v", secretCommandLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, secretCommandLimit, tooSlow)
	defer cancel()
	args := strings.Fields(command)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(hidden, name)
	})
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, time.Second
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bounded
	cmd.Stdout = &out
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case out.full:
		err = fmt.Errorf("it printed more than %d KiB", maxSecret>>10)
	}
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w; run the command as the worker's user to see why", args[0], err)
	}
	return out.kept.Bytes(), nil
}

// bounded refuses what is too long, which ends the program that writes it.
type bounded struct {
	kept bytes.Buffer // not embedded: its ReadFrom would read everything
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.full = b.full || b.kept.Len()+len(p) > maxSecret; b.full {
		return 0, errors.New("too long")
	}
	return b.kept.Write(p)
}
