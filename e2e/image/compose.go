package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// services reads docker-compose.yml as `docker compose` does in a directory with the given .env.
func services(ctx context.Context, file, dir, env string) (types.Services, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the Compose file: %w", err)
	}
	for name, data := range map[string][]byte{"docker-compose.yml": text, ".env": []byte(env)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, fmt.Errorf("copy the Compose file: %w", err)
		}
	}
	// The image's user reads it.
	if err := os.WriteFile(filepath.Join(dir, "errand.yaml"), []byte("budgets: {day: 200}\n"), 0o644); err != nil { //nolint:gosec // as above
		return nil, fmt.Errorf("write errand.yaml: %w", err)
	}
	options, err := cli.NewProjectOptions(nil, cli.WithWorkingDirectory(dir), cli.WithDefaultConfigPath,
		cli.WithEnvFiles(), cli.WithDotEnv)
	if err != nil {
		return nil, fmt.Errorf("read the Compose file: %w", err)
	}
	p, err := options.LoadProject(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the Compose file: %w", err)
	}
	return p.Services, nil
}

// spec is how docker-compose.yml starts a service's container.
type spec struct {
	name    string
	command []string // instead of the image's own
	env     []string // over that of the image
	health  []string // the command of its health check
	mounts  []string // bubblewrap's flags for volumes and tmpfs
}

// spec translates a service. Named volumes are directories of that name below dir, unnamed ones begin empty there.
func (i image) spec(s types.ServiceConfig, dir string) (spec, error) {
	test := i.Config.Healthcheck.Test
	if s.HealthCheck != nil {
		test = s.HealthCheck.Test
	}
	if len(test) < 2 || test[0] != "CMD" {
		return spec{}, fmt.Errorf("%s has a health check that is no command: %q", s.Name, test)
	}
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
		return spec{},
			fmt.Errorf("%s may write to its root or has capabilities: it would not be run as it is tried here", s.Name)
	}
	out := spec{name: s.Name, command: s.Command, health: test[1:]}
	for name, value := range s.Environment {
		if value != nil {
			out.env = append(out.env, name+"="+*value)
		}
	}
	for _, v := range s.Volumes {
		flag, source := "--bind", v.Source
		if v.Type == types.VolumeTypeVolume {
			var err error
			if source, err = i.volume(filepath.Join(dir, "volume-"+v.Source), v.Source != ""); err != nil {
				return spec{}, err
			}
		}
		switch {
		case source == os.DevNull:
			flag = "--dev-bind"
		case v.ReadOnly:
			flag = "--ro-bind"
		}
		out.mounts = append(out.mounts, flag, source, v.Target)
		if err := i.place(v.Target); err != nil {
			return spec{}, err
		}
	}
	if len(s.Tmpfs) > 0 {
		out.mounts = append(out.mounts, "--perms", "1777", "--tmpfs", "/tmp")
	}
	return out, nil
}

// volume makes a volume. A named one has the owner and mode of the image's directory at its place, any other the mode
// of /tmp.
func (i image) volume(dir string, named bool) (string, error) {
	mode := 0o777 | os.ModeSticky
	if named {
		mode = 0o700
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create volume: %w", err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		return "", fmt.Errorf("create volume: %w", err)
	}
	if err := os.Chown(dir, i.uid, i.gid); err != nil {
		return "", fmt.Errorf("create volume: %w", err)
	}
	return dir, nil
}

// place makes a file as a mount point if the image has none, as Docker does.
func (i image) place(target string) error {
	path := filepath.Join(i.root, target)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return fmt.Errorf("make a place for %s: %w", target, err)
	}
	return nil
}
