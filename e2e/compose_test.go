// Package e2e holds the tests of what is around the programs: the image, the Compose file, deploy/. It is a module of
// its own, so that the libraries it takes to read a Compose file as Compose does are no dependencies of errand.
package e2e

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// sample is a typical .env.
const sample = `
REDIS_PASSWORD=s3cret
SLACK_BOT_TOKEN=xoxb-s3cret
ERRAND_CONSOLE_TOKEN=console-s3cret
`

// load reads docker-compose.yml as `docker compose` does in a folder with the given .env.
func load(t *testing.T, env string) (*types.Project, error) {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"docker-compose.yml": string(text), ".env": env} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options, err := cli.NewProjectOptions(nil, cli.WithWorkingDirectory(dir), cli.WithDefaultConfigPath,
		cli.WithEnvFiles(), cli.WithDotEnv)
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(context.WithoutCancel(t.Context()))
}

func mustLoad(t *testing.T, env string) *types.Project {
	t.Helper()
	p, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The loader checks the schema, that no volume is missing and that no dependency is unknown.
func TestComposeFileIsValid(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, sample)
	if got, want := p.ServiceNames(), []string{"enqueue", "redis", "worker"}; !slices.Equal(got, want) {
		t.Errorf("services %v, want %v", got, want)
	}
	for _, name := range []string{"redis", "state"} {
		if _, ok := p.Volumes[name]; !ok {
			t.Errorf("no volume %s", name)
		}
	}
}

func TestPasswordIsAsked(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"", "REDIS_PASSWORD=\n"} {
		_, err := load(t, env)
		if err == nil || !strings.Contains(err.Error(), "REDIS_PASSWORD") ||
			!strings.Contains(err.Error(), "set it in .env") {
			t.Errorf("with %q: %v, want it to ask for REDIS_PASSWORD", env, err)
		}
	}
}

func TestNoSecretInTheFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	// A secret may be named as a variable and not be given a value, nor a default. It may be empty.
	inline := regexp.MustCompile(`(?i)(password|token|secret|api_key)\w*(: *[^?&*$\s]|=|:-)`)
	for n, line := range strings.Split(string(text), "\n") {
		if inline.MatchString(strings.TrimSuffix(line, `: ""`)) && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			t.Errorf("docker-compose.yml:%d seems to hold a secret: %s", n+1, line)
		}
	}
}

func TestRedisKeepsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	redis := mustLoad(t, sample).Services["redis"]
	if strings.Contains(strings.Join(redis.Command, " "), "s3cret") {
		t.Errorf("the password is in %q", redis.Command)
	}
	got := configOf(t, redis)
	for setting, want := range map[string]string{
		"appendonly": "yes", "maxmemory-policy": "noeviction", "requirepass": "s3cret",
	} {
		if got(setting) != setting+"\n"+want {
			t.Errorf("of Redis %q, want %s", got(setting), want)
		}
	}
	if !slices.ContainsFunc(redis.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Type == types.VolumeTypeVolume && v.Source == "redis" && v.Target == "/data"
	}) {
		t.Errorf("redis does not keep /data in its volume: %v", redis.Volumes)
	}
	if redis.HealthCheck == nil || len(redis.Ports) > 0 {
		t.Error("redis must have a health check and must not be published")
	}
	if _, ok := redis.Environment["SLACK_BOT_TOKEN"]; ok {
		t.Error("redis gets secrets of other services")
	}
}

// configOf starts the service's program in a separate directory without a port, and returns a function that reads a
// setting of that Redis.
func configOf(t *testing.T, redis types.ServiceConfig) func(setting string) string {
	t.Helper()
	dir := t.TempDir()
	command := slices.Clone([]string(redis.Command))
	last := &command[len(command)-1]
	// Compose itself does the latter
	*last = strings.ReplaceAll(strings.Replace(*last, "\nEND",
		"\nport 0\nunixsocket "+dir+"/socket\nEND", 1), "$$", "$")
	server := exec.CommandContext(t.Context(), command[0], command[1:]...)
	env := append(os.Environ(), "REDISCLI_AUTH="+*redis.Environment["REDISCLI_AUTH"])
	server.Dir, server.Env = dir, env
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "eady to accept connections") {
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return func(setting string) string {
		ask := exec.CommandContext(t.Context(), "redis-cli", "-s", dir+"/socket", "config", "get", setting)
		ask.Env = env
		answer, err := ask.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(answer))
	}
}

func TestWorkerScales(t *testing.T) {
	t.Parallel()
	worker := mustLoad(t, sample).Services["worker"]
	if len(worker.Ports) > 0 || worker.ContainerName != "" || worker.Hostname != "" {
		t.Errorf("a second worker would clash: ports %v, name %q, hostname %q", worker.Ports, worker.ContainerName,
			worker.Hostname)
	}
	if worker.StopGracePeriod == nil || time.Duration(*worker.StopGracePeriod) < 90*time.Second {
		t.Errorf("stop_grace_period is %v, and an orderly stop needs 90s", worker.StopGracePeriod)
	}
	if worker.Init != nil {
		t.Error("init is set although the image brings tini")
	}
}

func TestFrontDoorIsLocalUnlessAsked(t *testing.T) {
	t.Parallel()
	for env, host := range map[string]string{"": "127.0.0.1", "ERRAND_HTTP_ADDR=0.0.0.0:80\n": "0.0.0.0"} {
		ports := mustLoad(t, sample+env).Services["enqueue"].Ports
		if len(ports) != 1 || ports[0].HostIP != host || ports[0].Target != 8080 {
			t.Errorf("with %q published as %v, want on %s", env, ports, host)
		}
	}
}

// Every errand program starts after Redis, with its address and the settings of .env, and with no more rights than it
// needs.
func TestOurServices(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, sample)
	for _, name := range []string{"enqueue", "worker"} {
		s := p.Services[name]
		for variable, want := range map[string]string{
			"REDIS_URL":        "redis://:s3cret@redis:6379/0",
			"ERRAND_STATE_DIR": "/var/lib/errand",
			"ERRAND_CONFIG":    "/etc/errand.yaml",
			"ERRAND_SANDBOX":   "auto",
			"SLACK_BOT_TOKEN":  "xoxb-s3cret",
		} {
			if got := s.Environment[variable]; got == nil || *got != want {
				t.Errorf("%s: %s is not %q", name, variable, want)
			}
		}
		if s.DependsOn["redis"].Condition != types.ServiceConditionHealthy {
			t.Errorf("%s does not wait for redis", name)
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
			!slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s has more rights than it needs", name)
		}
	}
}

// The image's health check asks the front door here.
func TestFrontDoorIsChecked(t *testing.T) {
	t.Parallel()
	s := mustLoad(t, sample).Services["enqueue"]
	_, port, _ := strings.Cut(*s.Environment["ERRAND_HTTP_ADDR"], ":")
	if at := s.Environment["ERRAND_WORKER_ADDR"]; s.HealthCheck != nil || at == nil || *at != "127.0.0.1:"+port {
		t.Errorf("the health check %v asks %v", s.HealthCheck, at)
	}
}

// errand.yaml beside the Compose file is mounted unless another file is named. Compose does not make it: it would make a
// directory.
func TestConfigurationFileIsMounted(t *testing.T) {
	t.Parallel()
	none, named := mustLoad(t, sample), mustLoad(t, sample+"ERRAND_CONFIG=./other.yaml\n")
	const target = "/etc/errand.yaml"
	for _, name := range []string{"enqueue", "worker"} {
		if got := source(none.Services[name], target); got != filepath.Join(none.WorkingDir, "errand.yaml") {
			t.Errorf("%s: %s is %q though no file is named", name, target, got)
		}
		if got := source(named.Services[name], target); got != filepath.Join(named.WorkingDir, "other.yaml") {
			t.Errorf("%s: %s is %q", name, target, got)
		}
	}
}

func source(s types.ServiceConfig, target string) string {
	for _, v := range s.Volumes {
		if v.Target == target && v.Type == types.VolumeTypeBind && v.ReadOnly && v.Bind != nil &&
			!bool(v.Bind.CreateHostPath) {
			return v.Source
		}
	}
	return ""
}

// .env.example explains every variable that the Compose file uses.
func TestVariablesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../.env.example")
	if err != nil {
		t.Fatal(err)
	}
	used := regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(string(text), -1)
	if len(used) == 0 {
		t.Fatal("no variable found")
	}
	for _, m := range used {
		if !strings.Contains(string(example), "\n# "+m[1]+"=") {
			t.Errorf("%s is not in .env.example", m[1])
		}
	}
}
