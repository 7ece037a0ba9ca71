package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/display"
)

// stranger moves a front door's client to a separate home and directory, without settings.
func (f *frontDoor) stranger() (addr string) {
	addr = f.env["ERRAND_HTTP_ADDR"]
	f.env, f.dir = map[string]string{"HOME": f.TempDir()}, f.TempDir()
	return addr
}

func TestLogin(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("look")
	addr := f.stranger()
	file := filepath.Join(f.env["HOME"], ".config", "errand", "login.json")

	if code, _, errs := f.runWith("wrong\n", "login", "http://"+addr); code != 1 ||
		!strings.Contains(errs, "the server refused the token: use `enqueue login URL` with its address and ERRAND_CONSOLE_TOKEN") {
		t.Errorf("a wrong token: exit %d: %s", code, errs)
	}
	if code, _, errs := f.runWith("", "login", "http://"+addr); code != 2 ||
		!strings.Contains(errs, "standard input has ended") {
		t.Errorf("no token: exit %d: %s", code, errs)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a refused login is saved")
	}
	if code, out, errs := f.runWith(testToken+"\n", "login", addr); code != 0 ||
		strings.Contains(out+errs, testToken) || !strings.Contains(out, "Logged in to http://"+addr) {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	f.env["ERRAND_CONSOLE_TOKEN"] = "another"
	if _, _, errs := f.runWith(testToken+"\n", "login", addr); !strings.Contains(errs, "counts instead") {
		t.Errorf("a login that has no effect: %s", errs)
	}
	delete(f.env, "ERRAND_CONSOLE_TOKEN")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if code, out, errs := f.run("show", id); code != 0 || !strings.Contains(out, display.TaskID(id)) {
		t.Errorf("after the login: exit %d: %s", code, errs)
	}
	if err := os.WriteFile(file, []byte(`{"url":"http://`+addr+`","token":"revoked"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := f.run("list"); code != 1 || !strings.Contains(errs, "refused the token: use `enqueue login URL` with its address and ERRAND_CONSOLE_TOKEN") {
		t.Errorf("a saved token that was revoked: exit %d: %s", code, errs)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
	if code, out, _ := f.run("logout"); code != 0 || !strings.Contains(out, "Logged out.") {
		t.Errorf("log out: exit %d: %s", code, out)
	}
	if code, out, _ := f.run("logout"); code != 0 || !strings.Contains(out, "no saved login") {
		t.Errorf("log out again: exit %d: %s", code, out)
	}
}

// A token is only sent to the server that it is for: the .env of a stranger's repository neither gets the saved token
// nor replaces the saved server.
func TestAccessComesFromOnePlace(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("look")
	addr := f.stranger()
	called := false
	hostile := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer hostile.Close()

	env := func(addr, token string) {
		t.Helper()
		text := "# settings\nERRAND_HTTP_ADDR=" + addr + "\nERRAND_CONSOLE_TOKEN='" + token + "'\n"
		if err := os.WriteFile(filepath.Join(f.dir, ".env"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env(addr, testToken)
	if code, _, errs := f.run("show", id); code != 0 {
		t.Errorf("with .env: exit %d: %s", code, errs)
	}
	if code, _, errs := f.runWith(testToken, "login", addr); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	env(hostile.URL, "x")
	if code, _, errs := f.run("show", id); code != 0 || called {
		t.Errorf("with a login: exit %d, the .env counts: %t: %s", code, called, errs)
	}
	f.env["ERRAND_HTTP_ADDR"] = addr
	if code, _, errs := f.run("show", id); code != 1 || !strings.Contains(errs, "requires a token") || called {
		t.Errorf("with another address and no token: exit %d: %s", code, errs)
	}
}

func TestShortIDs(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	first, second := f.chat("one", "look"), f.chat("two", "look at "+"1234abcd")
	part := func(id string, n int) string { return id[len(id)-n:] }
	for arg, want := range map[string]string{
		first: first, part(first, 8): first, second[:20]: second, display.TaskID(first): first,
		strings.ToUpper(display.TaskID(second)): second, display.TaskID(second)[:5]: second,
	} {
		code, out, errs := f.run("show", arg)
		if code != 0 || !strings.HasPrefix(out, "task           "+display.TaskID(want)+"\n") {
			t.Errorf("%s: exit %d: %s%s", arg, code, out, errs)
		}
	}
	for arg, said := range map[string]string{
		"abc":      "Write at least 4 characters of the task's ID",
		"1234abcd": "No such task",
		first[:4]:  " is a part of several IDs, such as " + second,
		"../tasks": "No such task",
	} {
		if code, _, errs := f.run("cancel", arg); code == 0 || !strings.Contains(errs, said) {
			t.Errorf("%s: exit %d: %s", arg, code, errs)
		}
	}
}

func TestOutputFormat(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	f.submit("look")
	_, want, _ := f.run("list", "--json")
	if code, out, errs := f.run("list", "-o", "json"); code != 0 || out != want || !strings.HasPrefix(out, "{") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, _, errs := f.run("list", "-o", "xml"); code != 2 || !strings.Contains(errs, "must be text or json") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// The real shells complete commands, flags and IDs, as far as they are installed; bash always is.
func TestCompletion(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("look")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := f.run("completion", "bash")
	for line, want := range map[string]string{
		"enqueue ca": "cancel", "enqueue list --st": "--state", "enqueue cancel " + display.TaskID(id)[:3]: display.TaskID(id),
		"enqueue help sho": "show", "enqueue list x": "", "enqueue token rev": "revoke", "enqueue pause backg": "background",
	} {
		words := strings.Fields(line)
		// What the package bash-completion provides.
		bash := exec.CommandContext(t.Context(), "bash", "-c", `enqueue() { (exec -a `+underTest+` "$SELF" "$@"); }
_init_completion() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword - 1]}; }
`+script+`
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); __start_enqueue 2>/dev/null; echo "${COMPREPLY[*]%% *}"`, "bash")
		bash.Args = append(bash.Args, words...)
		env := maps.Clone(f.env)
		env["SELF"], env["PATH"] = self, os.Getenv("PATH")
		for name, value := range env {
			bash.Env = append(bash.Env, name+"="+value)
		}
		if out, err := bash.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
	for _, shell := range []string{"zsh", "fish"} { // their syntax
		if path, err := exec.LookPath(shell); err == nil {
			_, script, _ := f.run("completion", shell)
			if out, err := exec.CommandContext(t.Context(), path, "-n", "-c", script).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", shell, err, out)
			}
		}
	}
}
