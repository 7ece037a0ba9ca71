package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// files are the ways in which commands that are not run name files of the directory that they are run in.
var files = regexp.MustCompile(
	` (?:--(?:from-)?env-file[ =]|-f |--set-file \w+=|-v (?:\./|PWD/))([^ :]+)|^helm .* (deploy/\S+)|^(scripts/\S+)`)

// named are the names in commands that are not run, each with the file that must have it, in this form. What a pattern
// finds may be several names, and flags.
var named = []struct {
	pattern    *regexp.Regexp
	file, form string
}{
	{regexp.MustCompile(`^apt-get install .*\./errand_([0-9.]+)_amd64\.deb`), "CHANGELOG.md", "\n## [%s]"},
	{regexp.MustCompile(`^apt-get install ([a-z-]+)$`), "deploy/debian/control", " %s"},
	{regexp.MustCompile(`^docker build .*--build-arg (\w+)=`), "Dockerfile", "\nARG %s"},
	{regexp.MustCompile(`^docker compose (?:exec|run) (?:-v \S+ |-\S+ )*(\S+)`), "docker-compose.yml", "\n  %s:"},
	{regexp.MustCompile(`^docker compose (?:build|logs|stop|up) (.+)`), "docker-compose.yml", "\n  %s:"},
	{regexp.MustCompile(`^git clone https://(\S+)\.git`), "go.mod", "module %s\n"},
	{regexp.MustCompile(`^helm .* --set-file (\w+)=`), "deploy/helm/errand/values.yaml", "\n%s:"},
	{regexp.MustCompile(`^kubectl .*deploy(?:ment)?/(\S+)`), "deploy/kubernetes/*.yaml", "\nkind: Deployment\nmetadata:\n  name: %s\n"},
	{regexp.MustCompile(`^kubectl .*secret generic (\S+)`), "deploy/kubernetes/*.yaml", "- secretRef: {name: %s}"},
	{regexp.MustCompile(`^kubectl .* -l app=(\S+)`), "deploy/kubernetes/*.yaml", "\n        app: %s\n"},
	{regexp.MustCompile(`^npm (?:.* )?--prefix (\S+)`), "deploy/systemd/*.service", "PATH=%s/node_modules/.bin:"},
	{regexp.MustCompile(`^(?:systemctl [a-z]+|systemd-analyze security|journalctl) (.+)`), "deploy/systemd/*.service", "/%s.service\n"},
}

// ofDebian are units of packages that errand needs.
var ofDebian = []string{"redis-server"}

// checkCall checks what a call of a stand-in names: files, services, units, charts and targets of this repository.
func checkCall(t *testing.T, c call) error {
	t.Helper()
	switch c.args[0] {
	case "unknown":
		return errors.New("such a program is not run here: add it to recorded or to tools")
	case "make": // takes variables, and knows itself whether they and the targets are good
		cmd := exec.CommandContext(t.Context(), "make", append([]string{"-n", "-C", repoRoot}, c.args[1:]...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	text := strings.ReplaceAll(strings.Join(c.args, " "), c.dir+"/", "PWD/")
	for _, m := range files.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(c.dir, strings.TrimPrefix(m[1]+m[2]+m[3], "PWD/"))); err != nil {
			return err
		}
	}
	for _, n := range named {
		for _, m := range n.pattern.FindAllStringSubmatch(text, -1) {
			for name := range strings.FieldsSeq(m[1]) {
				if strings.HasPrefix(name, "-") || slices.Contains(ofDebian, name) {
					continue
				}
				if err := contains(textOf(t, n.file), fmt.Sprintf(n.form, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// textOf returns the text of files of the repository, each after its name.
func textOf(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repoRoot, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there is no %s: %v", pattern, err)
	}
	text := ""
	for _, path := range paths {
		text += path + "\n" + read(t, path)
	}
	return text
}

func contains(text, part string) error {
	if !strings.Contains(text, part) {
		return fmt.Errorf("%q is missing", strings.TrimSpace(part))
	}
	return nil
}

// checkCall finds what documents could get wrong.
func TestCheckCall(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"unknown frobnicate":                          "is not run here",
		"docker compose exec wrk enqueue list -x":     `"wrk:" is missing`,
		"docker build --build-arg GOIMAGE=x .":        "ARG GOIMAGE",
		"docker run --env-file none.env errand:local": "none.env: no such file",
		"docker run -v ./none:/x:ro errand:local":     "none: no such file",
		"make bild": "No rule to make target",
		"git clone https://github.com/acme/errand.git":                               "acme/errand",
		"apt-get install ./errand_0.0.9_amd64.deb":                                   "0.0.9",
		"helm install errand deploy/helm/errand -f none":                             "none: no such file",
		"helm install errand deploy/helm/errand --set-file yaml=README.md":           `"yaml:" is missing`,
		"kubectl create secret generic errand-door":                                  "errand-door",
		"kubectl -n errand rollout status deployment/errand-wrk":                     "name: errand-wrk",
		"kubectl logs -l app=worker":                                                 "app: worker",
		"systemctl enable --now errand-wrk":                                          `"/errand-wrk.service" is missing`,
		"systemctl restart errand-wrk errand-worker":                                 `"/errand-wrk.service" is missing`,
		"systemctl restart errand-work":                                              `"/errand-work.service" is missing`,
		"docker compose up -d redis enqeue":                                          `"enqeue:" is missing`,
		"npm --prefix /opt/other ci":                                                 "/opt/other",
		"scripts/mention-file":                                                       "no such file",
		"docker compose run -v " + repoRoot + "/deploy/none:/x:ro redis sh /x -- -y": "deploy/none: no such file",
	} {
		err := checkCall(t, call{repoRoot, strings.Fields(command)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", command, err, want)
		}
	}
}
