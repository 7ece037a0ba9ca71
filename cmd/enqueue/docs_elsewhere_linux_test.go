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

	"go.yaml.in/yaml/v3"
)

// elsewhere are the commands of documents that need another system, and their flags; "=" marks one with a value. What
// they name is checked: files, services, units, charts and targets exist. Each entry is in a document.
var elsewhere = map[string]struct {
	flags string
	check func(*testing.T, invoked) error
}{
	"apt-get install":      {"", checkPackages},
	"docker build":         {"-t= --build-arg=", checkBuild},
	"docker compose build": {"", checkCompose},
	"docker compose exec":  {"-T", checkCompose},
	"docker compose logs":  {"--no-log-prefix", checkCompose},
	"docker compose run":   {"--rm --no-deps -T -v=", checkCompose},
	"docker compose stop":  {"", checkCompose},
	"docker compose up":    {"-d --build", checkCompose},
	"docker push":          {"", nil},
	"docker run":           {"-d --name= --restart= --stop-timeout= --env-file= -v= -e= -p= --read-only --cap-drop= --security-opt= --pids-limit= --memory=", checkFiles},
	"errand-demo":          {"-once", checkDemo},
	"git clone":            {"", checkClone},
	"git fetch":            {"", nil}, // tests of package workspace fetch from bundles
	"git pull":             {"", nil},
	"git rev-parse":        {"--short", nil},
	// TestChart of e2e/proof renders it with values.yaml of the document
	"helm install":             {"-n= -f= --set-file=", checkChart},
	"helm upgrade":             {"-n= -f= --set-file=", checkChart},
	"kubectl create namespace": {"", nil},
	"kubectl create secret":    {"-n= --from-env-file=", checkSecret},
	"kubectl exec":             {"-n=", checkDeployment},
	"journalctl":               {"-u=", checkUnits},
	"kubectl logs":             {"-n= -l= --prefix --tail=", checkLabel},
	"kubectl rollout status":   {"-n=", checkDeployment},
	"make":                     {"", checkMake},
	"npm ci":                   {"--prefix= --omit=", checkNPM},
	"scripts/mention-files":    {"", checkFiles}, // takes minutes
	"sysctl":                   {"--system", nil},
	"systemctl daemon-reload":  {"", nil},
	"systemctl enable":         {"--now", checkUnits},
	"systemctl restart":        {"", checkUnits},
	"systemd-analyze security": {"", checkUnits}, // TestUnitsAreValid of e2e rates them
	"useradd":                  {"--system --home-dir= --shell=", nil},
}

// invoked is a call of a command that is not run, taken apart.
type invoked struct {
	dir     string
	command string              // of elsewhere
	words   []string            // arguments that are not flags
	flags   map[string][]string // with their values
}

// checkCall checks a call of a stand-in and returns its entry in elsewhere.
func checkCall(t *testing.T, c call) (entry string, err error) {
	t.Helper()
	if c.args[0] == "unknown" {
		return "", errors.New("such a program is not run here: give it a check in elsewhere, or add it to tools")
	}
	if c.args[0] == "make" { // takes variables, and knows itself whether they and the targets are good
		return "make", checkMake(t, invoked{words: c.args[1:]})
	}
	in := invoked{dir: c.dir, flags: map[string][]string{}}
	var flags []string
	for args := c.args; len(args) > 0 && args[0] != "--"; args = args[1:] {
		name, value, assigned := strings.Cut(args[0], "=")
		switch {
		case !strings.HasPrefix(name, "-"):
			in.words = append(in.words, args[0])
			if _, ok := elsewhere[strings.Join(in.words, " ")]; ok {
				entry = strings.Join(in.words, " ")
			}
			if command := "docker compose "; len(in.words) == 4 && (entry == command+"exec" || entry == command+"run") {
				args = args[:1] // what follows is the command in the container
			}
			continue
		case !assigned && takesValue(c.args[0], name) && len(args) > 1:
			value, args = args[1], args[1:]
		}
		flags = append(flags, name)
		in.flags[name] = append(in.flags[name], value)
	}
	known, ok := elsewhere[entry]
	if !ok {
		return "", errors.New("it is not in elsewhere: add it with a check")
	}
	for _, f := range flags {
		if all := strings.Fields(known.flags); !slices.Contains(all, f) && !slices.Contains(all, f+"=") {
			return "", fmt.Errorf("the flag %s is not in elsewhere", f)
		}
	}
	in.command, in.words = entry, in.words[len(strings.Fields(entry)):]
	if known.check == nil {
		return entry, nil
	}
	return entry, known.check(t, in)
}

// takesValue reports whether a flag has a value with any command of a program.
func takesValue(program, flag string) bool {
	for entry, known := range elsewhere {
		if strings.Fields(entry)[0] == program && slices.Contains(strings.Fields(known.flags), flag+"=") {
			return true
		}
	}
	return false
}

// exist returns an error for the first file that is not in the directory of the call.
func (in invoked) exist(files ...string) error {
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(in.dir, f)); err != nil {
			return err
		}
	}
	return nil
}

// checkFiles checks the files that flags name: those with values, and the sources of mounts in the directory.
func checkFiles(_ *testing.T, in invoked) error {
	files := slices.Concat(in.flags["--env-file"], in.flags["-f"], in.flags["--from-env-file"])
	for _, mount := range in.flags["-v"] {
		source, _, mounted := strings.Cut(mount, ":")
		if rel, inside := strings.CutPrefix(source, in.dir); inside || mounted && strings.HasPrefix(source, "./") {
			files = append(files, rel)
		}
	}
	for _, assignment := range in.flags["--set-file"] {
		_, file, _ := strings.Cut(assignment, "=")
		files = append(files, file)
	}
	if strings.Contains(in.command, "/") {
		files = append(files, in.command)
	}
	return in.exist(files...)
}

func checkBuild(t *testing.T, in invoked) error {
	if len(in.words) != 1 {
		return fmt.Errorf("the context is %q", in.words)
	}
	text := read(t, in.dir, in.words[0], "Dockerfile")
	for _, arg := range in.flags["--build-arg"] {
		if name, _, _ := strings.Cut(arg, "="); !strings.Contains(text, "\nARG "+name) {
			return fmt.Errorf("the Dockerfile has no ARG %s", name)
		}
	}
	return nil
}

// checkCompose checks that the named services are in the Compose file.
func checkCompose(t *testing.T, in invoked) error {
	var file struct{ Services map[string]any }
	if err := yaml.Unmarshal([]byte(read(t, in.dir, "docker-compose.yml")), &file); err != nil {
		return err
	}
	for _, service := range in.words {
		if file.Services[service] == nil {
			return fmt.Errorf("there is no service %s", service)
		}
	}
	return checkFiles(t, in)
}

func checkDemo(t *testing.T, _ invoked) error {
	return contains(read(t, repoRoot, "scripts/release"), "demo \"$root/usr/bin/errand-demo\"")
}

// checkClone checks the address of the repository, which is that of the module.
func checkClone(t *testing.T, in invoked) error {
	module := regexp.MustCompile(`^module (.*)\n`).FindStringSubmatch(read(t, repoRoot, "go.mod"))[1]
	return contains(strings.Join(in.words, " "), "https://"+module+".git")
}

// checkPackages checks that a package in the directory is that of the newest release, and that errand names others.
func checkPackages(t *testing.T, in invoked) error {
	version := regexp.MustCompile(`\n## \[([0-9][^]]*)\]`).FindStringSubmatch(read(t, repoRoot, "CHANGELOG.md"))[1]
	for _, name := range in.words {
		if name == "./errand_"+version+"_amd64.deb" {
			continue
		}
		if err := contains(read(t, repoRoot, "deploy/debian/control"), " "+name); err != nil {
			return err
		}
	}
	return nil
}

// checkChart checks that the chart exists and has a value for each file.
func checkChart(t *testing.T, in invoked) error {
	if err := contains(read(t, in.dir, in.words[1], "Chart.yaml"), "name: "+in.words[0]); err != nil {
		return err
	}
	for _, assignment := range in.flags["--set-file"] {
		value, _, _ := strings.Cut(assignment, "=")
		if err := contains(read(t, in.dir, in.words[1], "values.yaml"), "\n"+value+":"); err != nil {
			return err
		}
	}
	return checkFiles(t, in)
}

// checkSecret checks that the pods use the Secret.
func checkSecret(t *testing.T, in invoked) error {
	if in.words[0] != "generic" || len(in.words) != 2 {
		return fmt.Errorf("got %q", in.words)
	}
	pods := read(t, repoRoot, "deploy/kubernetes/worker.yaml") + read(t, repoRoot, "deploy/kubernetes/enqueue.yaml")
	if err := contains(pods, "- secretRef: {name: "+in.words[1]+"}"); err != nil {
		return err
	}
	return checkFiles(t, in)
}

func checkDeployment(t *testing.T, in invoked) error {
	_, name, _ := strings.Cut(in.words[0], "/")
	all := read(t, repoRoot, "deploy/kubernetes/worker.yaml") + read(t, repoRoot, "deploy/kubernetes/enqueue.yaml")
	return contains(all, "\nkind: Deployment\nmetadata:\n  name: "+name+"\n")
}

func checkLabel(t *testing.T, in invoked) error {
	return contains(read(t, repoRoot, "deploy/kubernetes/worker.yaml"),
		"\n        "+strings.ReplaceAll(in.flags["-l"][0], "=", ": ")+"\n")
}

func checkUnits(_ *testing.T, in invoked) error {
	for _, name := range append(in.words, in.flags["-u"]...) {
		if name == "redis-server" { // Debian's
			continue
		}
		if _, err := os.Stat(filepath.Join(repoRoot, "deploy/systemd", name+".service")); err != nil {
			return err
		}
	}
	return nil
}

// checkNPM checks that the files were put where npm looks for them.
func checkNPM(_ *testing.T, in invoked) error {
	if got := in.flags["--prefix"]; len(got) != 1 || got[0] != "/opt/errand" {
		return fmt.Errorf("the packages are in %q", got)
	}
	return nil
}

// checkMake lets make plan what it would do.
func checkMake(t *testing.T, in invoked) error {
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-n", "-C", repoRoot}, in.words...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
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
		"docker login":                                "not in elsewhere",
		"docker compose up -d --wait":                 "the flag --wait is not",
		"docker compose exec wrk enqueue list -x":     "no service wrk",
		"docker build --build-arg GOIMAGE=x .":        "no ARG GOIMAGE",
		"docker run --env-file none.env errand:local": "none.env: no such file",
		"docker run -v ./none:/x:ro errand:local":     "none: no such file",
		"make bild": "No rule to make target",
		"git clone https://github.com/acme/errand.git":                               "https://github.com/errand-fleet/errand.git",
		"apt-get install ./errand_0.0.9_amd64.deb":                                   "is missing",
		"helm install errand deploy/helm/errand -f none":                             "none: no such file",
		"helm install errand deploy/helm/errand --set-file yaml=README.md":           "\"yaml:\" is missing",
		"kubectl create secret generic errand-door":                                  "errand-door",
		"kubectl rollout status deployment/errand-worker --watch":                    "the flag --watch",
		"kubectl -n errand rollout status deployment/errand-wrk":                     "name: errand-wrk",
		"kubectl logs -l app=worker":                                                 "app: worker",
		"systemctl enable --now errand-enqueue errand-wrk":                           "errand-wrk.service: no such file",
		"npm --prefix /opt/other ci":                                                 "/opt/other",
		"scripts/mention-file":                                                       "not in elsewhere",
		"docker compose run -v " + repoRoot + "/deploy/none:/x:ro redis sh /x -- -y": "deploy/none: no such file",
	} {
		_, err := checkCall(t, call{repoRoot, strings.Fields(command)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", command, err, want)
		}
	}
}
