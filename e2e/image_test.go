package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// .dockerignore keeps everything out that it does not name: a new package must be named, and .env never.
func TestImageContext(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		named[strings.TrimSpace(line)] = true
	}
	if !named["*"] {
		t.Error("what is not named gets into the image")
	}
	for _, name := range []string{".env", ".git", "node_modules", "e2e"} {
		if named["!"+name] {
			t.Errorf("%s gets into the image", name)
		}
	}
	for _, dir := range packages(t) {
		if !named["!"+dir] {
			t.Errorf("%s has Go code and is not in .dockerignore: the image would be built without it", dir)
		}
	}
	list := exec.Command("go", "list", "-f", `{{range .EmbedFiles}}{{println $.ImportPath .}}{{end}}`, "./...")
	list.Dir = ".."
	embedded, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(embedded)) {
		if strings.Contains(line, " testdata/") {
			t.Errorf(".dockerignore leaves out a file that a program embeds: %s", line)
		}
	}
}

// packages lists the top-level folders with code of the main module.
func packages(t *testing.T) []string {
	t.Helper()
	modules, err := filepath.Glob("../*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, file := range modules {
		own[filepath.Base(filepath.Dir(file))] = true
	}
	var found []string
	for _, pattern := range []string{"../*/*.go", "../*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			dir := strings.Split(filepath.ToSlash(file), "/")[1]
			if !own[dir] && dir != "node_modules" && !strings.HasPrefix(dir, ".") &&
				!strings.HasSuffix(file, "_test.go") {
				own[dir] = true
				found = append(found, dir)
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("no package found")
	}
	return found
}

// The image of scripts/oci starts like that of the Dockerfile.
func TestOCIConfigIsTheDockerfiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, found := strings.Cut(string(text), "\nFROM ${RUNTIME_IMAGE}\n")
	if !found {
		t.Fatal("the Dockerfile has no last stage")
	}
	last = strings.ReplaceAll(last, "\\\n", " ")
	var image struct {
		Config struct {
			User, WorkingDir, StopSignal string
			Env, Entrypoint, Cmd         []string
			Volumes, ExposedPorts        map[string]struct{}
			Labels                       map[string]string
			Healthcheck                  struct {
				Test                           []string
				Interval, Timeout, StartPeriod time.Duration
				Retries                        int
			}
		} `json:"config"`
	}
	data, err := os.ReadFile("../deploy/oci/config.json")
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&image)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, h := image.Config, image.Config.Healthcheck
	list := func(values []string) string { return `["` + strings.Join(values, `", "`) + `"]` }
	want := []string{
		"USER " + c.User, "WORKDIR " + c.WorkingDir, "STOPSIGNAL " + c.StopSignal, "ENTRYPOINT " + list(c.Entrypoint),
		"CMD " + list(c.Cmd), fmt.Sprintf("HEALTHCHECK --interval=%v --timeout=%v --start-period=%v --retries=%d %s %s",
			h.Interval, h.Timeout, h.StartPeriod, h.Retries, h.Test[0], list(h.Test[1:])),
	}
	for path := range c.Volumes {
		want = append(want, "VOLUME "+path)
	}
	for port := range c.ExposedPorts {
		want = append(want, "EXPOSE "+strings.TrimSuffix(port, "/tcp"))
	}
	got := map[string]bool{}
	for line := range strings.Lines(last) {
		got[strings.Join(strings.Fields(line), " ")] = true
	}
	for _, line := range want {
		if !got[line] {
			t.Errorf("the Dockerfile does not have %s", line)
		}
	}
	env := "ENV " + strings.Replace(strings.Join(c.Env, " "),
		":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ":$PATH", 1)
	var labels []string
	for name, value := range c.Labels {
		labels = append(labels, name+`="`+value+`"`)
	}
	for line := range got {
		rest, isLabel := strings.CutPrefix(line, "LABEL ")
		for _, label := range labels {
			rest = strings.Replace(rest, label, "", 1)
		}
		if isLabel && strings.TrimSpace(rest) != "" || strings.HasPrefix(line, "ENV ") && line != env {
			t.Errorf("deploy/oci/config.json does not have %s", line)
		}
	}
}
