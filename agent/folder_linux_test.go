package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// A run starts in a directory of its clone, and may change all of the clone; what starts before it runs in the root.
func TestFolder(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, b *bench) {
		folder := "services/a b"
		if err := os.MkdirAll(filepath.Join(b.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		res := b.run(t, t.Context(), Spec{
			Profile: Write, Folder: "./" + folder + "/", Environment: Environment{Start: []string{"pwd"}},
			Prompt: Message{Text: "cat $TMPDIR/start.log; pwd; touch ../../beside && echo written"},
		}, &host{})
		want := b.dir + "\n" + filepath.Join(b.dir, folder) + "\nwritten"
		if res.Outcome != Done || !strings.HasPrefix(res.Text, want) {
			t.Errorf("%v %q, want %q", res.Error, res.Text, want)
		}
	}
	inBoth(t, "shell", test)
	b := newBench(t, "shell")
	for folder, want := range map[string]string{
		"none": "no such file", "../x": "not below", "/tmp": "not below",
	} {
		_, err := b.Run(t.Context(), b.with(t, Spec{Folder: folder}), &host{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a run in %s: %v", folder, err)
		}
	}
}

// The CLI works in the folder: relative paths of calls are below it, also for the policy, and a conversation goes on in
// other folders, whatever their names.
func TestCLIInFolder(t *testing.T) {
	t.Parallel()
	if p := new(Runner).policy(Spec{Dir: "/clone", Folder: "web"}); p.Dir != "/clone" || p.Start != "/clone/web" {
		t.Errorf("%+v", p)
	}
	model, dir := newModel(t), t.TempDir()
	files := map[string]string{}
	for _, name := range []string{"services/api/x.txt", "web/y.txt", "CLAUDE.md", "services/CLAUDE.md"} {
		files[name] = "OF THE HEAD " + name
	}
	put(t, dir, files)
	given := handed(t, "acme/api", dir, map[string]string{"CLAUDE.md": "ROOT TEXT", "services/CLAUDE.md": "SERVICES TEXT"})
	beside := filepath.Join(dir, "web/y.txt")
	model.Answer("Go.", call("Bash", "command", "pwd"), call("Read", "file_path", beside),
		call("Read", "file_path", "x.txt"), modelfake.Turn{Text: "Read."})
	r := newCLI(t, model)
	spec := Spec{
		ID: "folder", Dir: dir, Folder: "services/api", Prompt: Message{Text: "Go."}, Profile: Write,
		Instructions: []Instructions{given},
	}
	res := runCLI(t, r, spec, &host{})
	requests := model.Requests()
	last := string(requests[len(requests)-1].Body)
	for _, want := range []string{
		filepath.Join(dir, "services/api"), "OF THE HEAD web/y.txt", "OF THE HEAD services/api/x.txt",
	} {
		if !strings.Contains(last, want) {
			t.Errorf("the last request lacks %q", want)
		}
	}
	if strings.Contains(last, "OF THE HEAD CLAUDE.md") || strings.Contains(last, "OF THE HEAD services/CLAUDE.md") {
		t.Error("the head's instructions reached the model")
	}
	if strings.Count(last, "SERVICES TEXT") != 1 {
		t.Errorf("the texts about the file that was read are there %d times", strings.Count(last, "SERVICES TEXT"))
	}
	long := "web/🚀 " + strings.Repeat("long/", 50) + "end"
	if err := os.MkdirAll(filepath.Join(dir, long), 0o700); err != nil {
		t.Fatal(err)
	}
	said := []string{"Go."}
	for n, folder := range []string{long, "web"} {
		said = append(said, fmt.Sprintf("Message %d.", n))
		model.Answer(said[n+1], call("Bash", "command", "pwd"), modelfake.Turn{Text: "There."})
		spec.Folder, spec.Prompt.Text, spec.Resume = folder, said[n+1], &res.Session
		res = runCLI(t, r, spec, &host{})
		requests = model.Requests()
		last, there := string(requests[len(requests)-1].Body), filepath.Join(dir, folder)
		for _, text := range said {
			if res.Fresh || !strings.Contains(last, text) {
				t.Errorf("the conversation in %.40s lacks %q", folder, text)
			}
		}
		if !strings.Contains(last, there+`"`) && !strings.Contains(last, there+`\n`) {
			t.Errorf("message %d goes on with %s", n, last)
		}
	}
}
